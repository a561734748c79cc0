"""The watched folder. ``inbox`` says what follows from each happening in it; the other modules are its parts."""
