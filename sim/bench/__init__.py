"""`lanikai bench`: how fast the simulations are, what Python costs them, how long models take to build."""
