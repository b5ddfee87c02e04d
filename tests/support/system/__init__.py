"""Points and mutants of the tests of whole systems."""
