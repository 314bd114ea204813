// Waits and tests on words of this PE (M22, M23, G6): 2, 4 or 8 bytes, integers. When one succeeds, later reads of its
// thread see what the writer had ordered before the word. A wait ends without success only when the job has failed.
#pragma once

#include "atomic.cuh"
#include "compare.cuh"

namespace oxshmem {
namespace waits {

template <class T>
OXSHMEM_DEVICE T load(const T* word) {
    return words::from_word<T>(words::load_relaxed(words::word_of(word)));
}

// After a word was seen by a relaxed load: what its writer ordered before it is visible from here on.
OXSHMEM_DEVICE void acquire() {
    words::fence_all();
    // A NIC's writes may be late for the GPU: the host makes them visible.
    if ((oxshmem_state.flags & FLUSH_AFTER_WAIT) && oxshmem_state.ring)
        ring::await_done(ring::post_order(ring::OP_FLUSH));
}

template <class T>
struct Holds {
    const T* word;
    Compare compare;
    T value;
    T seen;

    OXSHMEM_MEMBER bool operator()() {
        seen = load(word);
        return holds(seen, compare, value);
    }
};

// Words, of which those whose status is not 0 are left out, compared with one value or each with its own.
template <class T>
struct Set {
    T* words;
    size_t n;
    const int* status;
    Compare compare;
    const T* values;
    u32 step;   // 0: one value for all; 1: one for each

    OXSHMEM_MEMBER bool has(size_t i) const { return !status || status[i] == 0; }
    OXSHMEM_MEMBER bool holds(size_t i) const { return waits::holds(load(words + i), compare, values[i * step]); }
    OXSHMEM_MEMBER bool is_empty() const {
        for (size_t i = 0; i < n; ++i)
            if (has(i)) return false;
        return true;
    }
    OXSHMEM_MEMBER bool check(u32 call) const {
        return check::range(call, my_pe(), words, n * sizeof(T), sizeof(T));
    }
    // Whether all hold. The first of which it is not known yet is `*from`.
    OXSHMEM_MEMBER bool all(size_t* from) const {
        for (; *from < n; ++*from)
            if (has(*from) && !holds(*from)) return false;
        return true;
    }
    // One that holds, looked for from `start` on; SIZE_MAX if none does.
    OXSHMEM_MEMBER size_t any(size_t start) const {
        for (size_t k = 0; k < n; ++k) {
            const size_t i = (start + k) % n;
            if (has(i) && holds(i)) return i;
        }
        return (size_t)-1;
    }
    OXSHMEM_MEMBER size_t some(size_t* indices) const {
        size_t found = 0;
        for (size_t i = 0; i < n; ++i)
            if (has(i) && holds(i)) indices[found++] = i;
        return found;
    }
};

template <class T>
struct All {
    const Set<T>& set;
    size_t from;
    OXSHMEM_MEMBER bool operator()() { return set.all(&from); }
};
template <class T>
struct Any {
    const Set<T>& set;
    size_t start;
    size_t found;
    OXSHMEM_MEMBER bool operator()() { return (found = set.any(start)) != (size_t)-1; }
};
template <class T>
struct Some {
    const Set<T>& set;
    size_t* indices;
    size_t found;
    OXSHMEM_MEMBER bool operator()() { return (found = set.some(indices)) != 0; }
};

// Another start for each call, so that no word is passed over for ever.
OXSHMEM_DEVICE size_t next_start(size_t n) { return n ? words::fetch_add(&oxshmem_state.shared->turn, 1u) % n : 0; }

template <class T>
OXSHMEM_OUTLINE void wait_all(Set<T> set) {
    if (!set.check(check::CALL_WAIT) || set.is_empty()) return;
    All<T> condition = {set, 0};
    spin::until(condition);
    acquire();
}
template <class T>
OXSHMEM_OUTLINE size_t wait_any(Set<T> set) {
    if (!set.check(check::CALL_WAIT) || set.is_empty()) return (size_t)-1;
    Any<T> condition = {set, next_start(set.n), (size_t)-1};
    spin::until(condition);
    acquire();
    return condition.found;
}
template <class T>
OXSHMEM_OUTLINE size_t wait_some(Set<T> set, size_t* indices) {
    if (!set.check(check::CALL_WAIT) || set.is_empty()) return 0;
    Some<T> condition = {set, indices, 0};
    spin::until(condition);
    acquire();
    return condition.found;
}
template <class T>
OXSHMEM_OUTLINE int test_all(Set<T> set) {
    size_t from = 0;
    if (!set.check(check::CALL_TEST)) return 0;
    if (set.is_empty()) return 1;
    if (!set.all(&from)) return 0;
    acquire();
    return 1;
}
template <class T>
OXSHMEM_OUTLINE size_t test_any(Set<T> set) {
    if (!set.check(check::CALL_TEST) || set.is_empty()) return (size_t)-1;
    const size_t found = set.any(next_start(set.n));
    if (found != (size_t)-1) acquire();
    return found;
}
template <class T>
OXSHMEM_OUTLINE size_t test_some(Set<T> set, size_t* indices) {
    if (!set.check(check::CALL_TEST)) return 0;
    const size_t found = set.some(indices);
    if (found != 0) acquire();
    return found;
}

// The value at which a wait ended.
template <class T>
OXSHMEM_OUTLINE T wait(const T* word, Compare compare, T value) {
    Holds<T> condition = {word, compare, value, T()};
    if (!check::range(check::CALL_WAIT, my_pe(), word, sizeof(T), sizeof(T))) return condition.seen;
    spin::until(condition);
    acquire();
    return condition.seen;
}

}  // namespace waits

template <class T>
OXSHMEM_DEVICE void wait_until(const T* word, Compare compare, typename words::Same<T>::Type value) {
    waits::wait<T>(word, compare, value);
}
template <class T>
OXSHMEM_DEVICE int test(const T* word, Compare compare, typename words::Same<T>::Type value) {
    if (!check::range(check::CALL_TEST, my_pe(), word, sizeof(T), sizeof(T))) return 0;
    if (!waits::holds<T>(waits::load(word), compare, value)) return 0;
    waits::acquire();
    return 1;
}

// The value at which the wait ended.
template <class Signal>
OXSHMEM_DEVICE u64 signal_wait_until(const Signal* signal, Compare compare, u64 value) {
    return waits::wait((const u64*)words::signal_word((Signal*)signal), compare, value);
}
// The value of a signal of this PE. The data of the put_signal that gave it this value is visible (M22).
template <class Signal>
OXSHMEM_DEVICE u64 signal_fetch(const Signal* signal) {
    const u64 seen = waits::load((const u64*)words::signal_word((Signal*)signal));
    waits::acquire();
    return seen;
}

// Forms for several words: `status[i]` other than 0 leaves word i out, and `status` may be null. If all are left
// out, waits return at once: `any` with SIZE_MAX, `some` with 0. The vector forms have a value for each word.
#define OXSHMEM_SEVERAL(suffix, Values, values, step)                                                          \
    template <class T>                                                                                         \
    OXSHMEM_DEVICE void wait_until_all##suffix(T* words, size_t n, const int* status, Compare compare, Values) { \
        waits::wait_all(waits::Set<T>{words, n, status, compare, values, step});                               \
    }                                                                                                          \
    template <class T>                                                                                         \
    OXSHMEM_DEVICE size_t wait_until_any##suffix(T* words, size_t n, const int* status, Compare compare, Values) { \
        return waits::wait_any(waits::Set<T>{words, n, status, compare, values, step});                        \
    }                                                                                                          \
    template <class T>                                                                                         \
    OXSHMEM_DEVICE size_t wait_until_some##suffix(T* words, size_t n, size_t* indices, const int* status,      \
                                                  Compare compare, Values) {                                   \
        return waits::wait_some(waits::Set<T>{words, n, status, compare, values, step}, indices);              \
    }                                                                                                          \
    template <class T>                                                                                         \
    OXSHMEM_DEVICE int test_all##suffix(T* words, size_t n, const int* status, Compare compare, Values) {      \
        return waits::test_all(waits::Set<T>{words, n, status, compare, values, step});                        \
    }                                                                                                          \
    template <class T>                                                                                         \
    OXSHMEM_DEVICE size_t test_any##suffix(T* words, size_t n, const int* status, Compare compare, Values) {   \
        return waits::test_any(waits::Set<T>{words, n, status, compare, values, step});                        \
    }                                                                                                          \
    template <class T>                                                                                         \
    OXSHMEM_DEVICE size_t test_some##suffix(T* words, size_t n, size_t* indices, const int* status,            \
                                            Compare compare, Values) {                                         \
        return waits::test_some(waits::Set<T>{words, n, status, compare, values, step}, indices);              \
    }
OXSHMEM_SEVERAL(, typename words::Same<T>::Type value, &value, 0)
OXSHMEM_SEVERAL(_vector, const T* values, values, 1)
#undef OXSHMEM_SEVERAL

}  // namespace oxshmem
