//! Where rows come from: a record and its index, or what a proxy without a record still remembers.
