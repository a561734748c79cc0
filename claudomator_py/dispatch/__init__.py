"""The loop: read what happened, observe, plan, start; and asking for tiers beside it."""
