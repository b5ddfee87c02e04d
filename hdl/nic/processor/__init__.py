"""The side of the card's processor: its port, two of them, interrupts, the real-time clock."""
