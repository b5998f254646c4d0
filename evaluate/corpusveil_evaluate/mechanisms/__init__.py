"""Published mechanisms whose theorems are false, for comparison; ``cv.mechanism`` finds them by entry points."""
