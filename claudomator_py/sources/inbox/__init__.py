"""The watched folder. ``inbox`` describes what follows from each event in it; the other modules are its parts."""
