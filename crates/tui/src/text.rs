//! What bodies look like on a screen: laid out, coloured, folded, compared. Pure functions of bytes.
