"""What command lines do beyond the working directory. Pure; standard library only, because hooks import it too."""
