"""Networks in files of the user's: one reader a format, one registry of formats."""
