//! Behaviour of every backend, one test per guarantee of [`tertulia_store::Store`].
//!
//! A backend uses [`crate::conformance_suite`] with what it supports:
//!
//! | kind | the backend provides | cases |
//! |---|---|---|
//! | `memory` | one store | those with a single handle |
//! | `place` | a [`crate::place::Place`]: a shareable store that leaves compression to a server | also those with several handles |
//! | `folder` | a [`crate::place::Folder`]: a location on disk | also those that compress and that inspect files |
//!
//! After every case the store is checked, rebuilt and checked again.

pub mod claims;
pub mod compressed;
pub mod drafts;
pub mod ends;
pub mod filters;
pub mod finds;
pub mod forks;
pub mod handles;
pub mod lists;
pub mod log;
pub mod on_disk;
pub mod purge;
pub mod search;
pub mod texts;
pub mod unsent;

use tertulia_store::{Store, StoreError, StoreResult};

use crate::ask::assert_sound;
use crate::place::Place;

/// Defines one test per case for a backend:
/// `conformance_suite!(name, folder: || Folder::new(open))`.
#[macro_export]
macro_rules! conformance_suite {
    ($backend:ident, memory: $store:expr) => {
        mod $backend {
            #[allow(unused_imports)]
            use super::*;
            $crate::conformance_suite!(@store_cases on_store($store));
            $crate::conformance_suite!(@compressed_cases on_store($store));
        }
    };
    ($backend:ident, place: $place:expr) => {
        mod $backend {
            #[allow(unused_imports)]
            use super::*;
            $crate::conformance_suite!(@store_cases on_store_of($place));
            $crate::conformance_suite!(@place_cases on_place($place));
        }
    };
    ($backend:ident, folder: $folder:expr) => {
        mod $backend {
            #[allow(unused_imports)]
            use super::*;
            $crate::conformance_suite!(@store_cases on_store_of($folder));
            $crate::conformance_suite!(@compressed_cases on_store_of($folder));
            $crate::conformance_suite!(@place_cases on_place($folder));
            mod compressed_handles {
                use super::*;
                #[test]
                fn compressed_by_the_other() {
                    $crate::conformance::on_place(
                        $folder,
                        $crate::conformance::handles::compressed_by_the_other,
                    );
                }
            }
            mod on_disk {
                use super::*;
                #[test]
                fn what_is_purged_is_in_no_file() {
                    $crate::conformance::on_disk::what_is_purged_is_in_no_file(&($folder)());
                }
                #[test]
                fn what_was_purged_with_its_forks_is_in_no_file() {
                    $crate::conformance::on_disk::what_was_purged_with_its_forks_is_in_no_file(
                        &($folder)(),
                    );
                }
                #[test]
                fn what_was_compressed_and_purged_is_in_no_file() {
                    $crate::conformance::on_disk::what_was_compressed_and_purged_is_in_no_file(
                        &($folder)(),
                    );
                }
                #[test]
                fn bytes_are_counted() {
                    $crate::conformance::on_disk::bytes_are_counted(&($folder)());
                }
            }
        }
    };
    (@store_cases $run:ident($open:expr)) => {
        $crate::conformance_suite! { @tests $run($open)
            log:
                round_trip_byte_for_byte,
                windows,
                windows_of_extreme_size,
                append_of_several_is_one,
                an_append_without_its_rest_is_refused,
                stale_head_is_a_conflict,
                conflict_leaves_everything_alone,
                unknown_session_is_not_found,
                taken_id_exists,
                rows_follow_every_kind_of_entry,
                undo_of_every_change,
                more_changes_than_can_be_undone,
                info_counts;
            forks:
                share_their_beginning,
                through_two_levels,
                in_the_middle,
                of_a_fork_before_its_fork_point,
                of_a_fork_at_its_fork_point,
                windows_across_levels,
                base_goes_on_alone,
                wrong_base_is_an_error,
                anywhere_in_a_long_log,
                rows_say_where_they_come_from,
                of_a_trashed_session;
            lists:
                newest_first,
                equal_times_by_id,
                only_speaking_moves_a_session_up,
                pages_cover_everything_once,
                pages_of_changing_size,
                pages_by_change,
                a_cursor_survives_being_written_down,
                hidden_are_counted,
                hidden_count_every_other_filter,
                hidden_follow_every_change;
            filters:
                by_project,
                by_worktree,
                by_kind_and_team,
                by_tag,
                by_origin,
                by_auto_tag,
                by_time,
                by_trash,
                by_change,
                by_several,
                odd_names;
            finds:
                by_id,
                by_beginning,
                by_ending,
                by_short_beginning,
                by_part_that_is_no_id,
                by_title,
                odd_titles,
                by_original_id,
                trashed_too,
                several_newest_first;
            search:
                words_in_any_order,
                phrases,
                exclusions,
                beginnings,
                chinese_and_japanese,
                accents_are_folded,
                titles,
                tool_calls,
                failures,
                what_is_not_indexed_yet_is_counted,
                speakers_and_roles,
                projects_and_elsewhere,
                every_filter,
                trashed_are_not_found,
                just_appended_is_found,
                through_a_fork_of_a_trashed_session,
                shared_entries_are_found_once,
                hits_say_where,
                total_and_limit,
                no_session_hides_another,
                times_of_hits,
                best_first;
            drafts:
                kept_and_replaced,
                replaced_by_the_finished_answer,
                ignored_when_the_log_went_on,
                of_a_later_head_are_ignored,
                one_per_session,
                left_alone_by_a_conflict,
                odd_texts;
            unsent:
                kept_and_replaced,
                of_each_session,
                purged;
            ends:
                are_replaced,
                of_a_fork,
                beside_forks,
                of_another_head,
                beside_a_draft,
                of_a_long_log;
            claims:
                one_holder,
                shown_in_rows,
                one_per_session;
            purge:
                gone_everywhere,
                forks_keep_what_they_share,
                forks_of_forks_keep_what_they_share,
                sizes_of_what_is_shared,
                searched_through_forks,
                id_can_be_used_again,
                id_can_be_used_again_while_forks_live,
                nothing_stays_behind_the_last_fork,
                forks_share_no_more_than_the_longest,
                purged_forks_share_no_more_than_their_forks,
                a_purged_base_is_no_base,
                a_purged_base_has_no_draft,
                the_draft_goes_too,
                others_stay;
            texts:
                odd_contents,
                odd_titles_and_tags,
                large_message,
                many_entries_in_one_append,
                every_field,
                unknown_types_survive,
                searched_by_odd_words;
        }
    };
    (@compressed_cases $run:ident($open:expr)) => {
        $crate::conformance_suite! { @tests $run($open)
            compressed:
                stay_as_they_are,
                are_plain_after_an_append,
                have_forks,
                are_purged,
                are_not_open;
        }
    };
    (@place_cases $run:ident($open:expr)) => {
        $crate::conformance_suite! { @tests $run($open)
            handles:
                sees_appends_at_once,
                conflicts_over_two,
                searches_what_the_other_wrote,
                sees_purges,
                searches_an_end_that_the_other_replaced,
                compressed_while_others_write,
                forks_what_the_other_wrote,
                drafts_survive_reopening,
                drafts_of_the_other,
                claims_over_two,
                taken_over,
                claims_while_others_list,
                everything_survives_reopening,
                several_make_the_store,
                two_write_to_one_session,
                two_write_to_two_sessions,
                searches_while_the_other_rebuilds,
                rebuild_beside_a_writer,
                unsent_words_of_the_other,
                unsent_words_taken_over;
        }
    };
    (@tests $run:ident($open:expr) $($room:ident: $($case:ident),+;)+) => {
        $(mod $room {
            #[allow(unused_imports)]
            use super::*;
            $(#[test]
            fn $case() {
                $crate::conformance::$run($open, $crate::conformance::$room::$case);
            })+
        })+
    };
}

/// Runs a case on a new store.
pub fn on_store<S: Store>(open: impl Fn() -> StoreResult<S>, case: fn(&dyn Store)) {
    let store = open().expect("the store can be opened");
    case(&store);
    assert_sound(&store);
}

/// Runs a case with a single handle on a store at a new location.
pub fn on_store_of<P: Place>(place: impl Fn() -> P, case: fn(&dyn Store)) {
    let place = place();
    let store = place.open();
    case(&*store);
    assert_sound(&*store);
}

/// Runs a case with several handles at a new location.
pub fn on_place<P: Place>(place: impl Fn() -> P, case: fn(&dyn Place)) {
    let place = place();
    case(&place);
    assert_sound(&*place.open());
}

/// Asserts that the result is `NotFound`.
#[track_caller]
fn assert_not_found<T: std::fmt::Debug>(answer: StoreResult<T>, id: tertulia_core::id::SessionId) {
    match answer {
        Err(StoreError::NotFound(named)) => assert_eq!(named, id),
        other => panic!("there should be no session {id}, but: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    /// A case that is not listed would never run.
    #[test]
    fn every_case_is_listed() {
        let listed = include_str!("mod.rs");
        let rooms = [
            include_str!("claims.rs"),
            include_str!("compressed.rs"),
            include_str!("drafts.rs"),
            include_str!("ends.rs"),
            include_str!("filters.rs"),
            include_str!("finds.rs"),
            include_str!("forks.rs"),
            include_str!("handles.rs"),
            include_str!("lists.rs"),
            include_str!("log.rs"),
            include_str!("on_disk.rs"),
            include_str!("purge.rs"),
            include_str!("search.rs"),
            include_str!("unsent.rs"),
            include_str!("texts.rs"),
        ];
        for line in rooms.iter().flat_map(|room| room.lines()) {
            let name = line
                .strip_prefix("pub fn ")
                .and_then(|rest| rest.split(['(', '<']).next());
            if let Some(name) = name {
                assert!(listed.contains(&format!(" {name}")), "{name} is not listed");
            }
        }
    }
}
