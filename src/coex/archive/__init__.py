"""An archive of saved games in rare places, and a policy that is taught by the search from them."""
