"""Networks looked at without simulation: distances, bisection, channel loads, ideal throughput; and their drawing."""
