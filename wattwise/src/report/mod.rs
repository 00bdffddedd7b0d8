//! Reports for people: one HTML file without network.
