"""What goes over the wire: what routes and bodies ask for, how answers are judged, how endings are said.  No I/O."""
