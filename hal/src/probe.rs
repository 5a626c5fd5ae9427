//! Asking a plugin in a child process.
