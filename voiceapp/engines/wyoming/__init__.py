"""Speech servers of the Home Assistant family, by the Wyoming protocol (package `wyoming`)."""
