"""The card's end of the link: packets to flits and back, packet buffers a virtual lane."""
