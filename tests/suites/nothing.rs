//! A package has to have a library; the suites are its tests.
