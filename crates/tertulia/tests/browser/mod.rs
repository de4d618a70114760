//! The web page as users see it: the built program in an empty home, and a real browser.

mod changing;
mod driver;
mod lists;
mod login;
mod looks;
mod loss;
mod scrolling;
mod slow;
mod stage;
mod talking;
mod together;
mod tools;
mod window;
