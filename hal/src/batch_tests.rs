//! What a batch packs is what the contract's structs hold.

#![allow(
    unsafe_code,
    reason = "reads packed commands back as the structs they are"
)]

use super::*;

fn batch() -> Batch {
    // SAFETY: no queue runs it.
    unsafe { Batch::new() }
}

fn read<T: Copy>(batch: &Batch) -> T {
    assert_eq!(size_of_val(batch.words()), size_of::<T>());
    // SAFETY: a plain C struct of integers of that size, 8-byte aligned.
    unsafe { *batch.words().as_ptr().cast::<T>() }
}

fn check_head(head: abi::Command, kind: u16, size: usize, flags: u32) {
    assert_eq!(
        (head.kind, head.size as usize, head.flags),
        (kind, size, flags)
    );
}

#[test]
fn copy() {
    let mut b = batch();
    b.copy(1, 2, 3);
    let c: abi::CommandCopy = read(&b);
    check_head(c.head, kind::COPY, size_of_val(&c), 0);
    assert_eq!((c.dst, c.src, c.bytes, c.repeat), (1, 2, 3, 1));
    b.clear();
    b.copy_strided(&CopyPieces {
        dst: 1,
        src: 2,
        bytes: 3,
        repeat: 4,
        dst_stride: 5,
        src_stride: 6,
        streaming: true,
    });
    let c: abi::CommandCopy = read(&b);
    check_head(c.head, kind::COPY, size_of_val(&c), abi::CMD_STREAMING);
    assert_eq!(
        [c.dst, c.src, c.bytes, c.repeat, c.dst_stride, c.src_stride],
        [1, 2, 3, 4, 5, 6]
    );
}

#[test]
fn reduce() {
    let mut b = batch();
    b.reduce(&Reduce {
        dst: 1,
        a: 2,
        b: 3,
        elements: 4,
        repeat: 5,
        dst_stride: 6,
        a_stride: 7,
        b_stride: 8,
        dtype: 9,
        reduction: 10,
        divisor: 11,
        streaming: true,
    });
    let c: abi::CommandReduce = read(&b);
    check_head(c.head, kind::REDUCE, size_of_val(&c), abi::CMD_STREAMING);
    assert_eq!([c.dst, c.a, c.b, c.elements, c.repeat], [1, 2, 3, 4, 5]);
    assert_eq!([c.dst_stride, c.a_stride, c.b_stride], [6, 7, 8]);
    assert_eq!((c.dtype, c.reduction, c.divisor), (9, 10, 11));
}

#[test]
fn scale() {
    let mut b = batch();
    b.scale(&Scale {
        dst: 1,
        src: 2,
        elements: 3,
        factor: [4, 5, 0, 0, 0, 0, 0, 6],
        dtype: 7,
    });
    let c: abi::CommandScale = read(&b);
    check_head(c.head, kind::SCALE, size_of_val(&c), 0);
    assert_eq!([c.dst, c.src, c.elements, c.repeat], [1, 2, 3, 1]);
    assert_eq!((c.factor, c.dtype), ([4, 5, 0, 0, 0, 0, 0, 6], 7));
}

#[test]
fn call() {
    unsafe extern "C" fn function(
        _: *mut std::ffi::c_void,
        _: *mut std::ffi::c_void,
        _: *const std::ffi::c_void,
        _: *const std::ffi::c_void,
        _: u64,
    ) {
    }
    let mut b = batch();
    b.call(&Call {
        function,
        context: 1,
        dst: 2,
        a: 3,
        b: 4,
        elements: 5,
        element_bytes: 6,
    });
    let c: abi::CommandCall = read(&b);
    check_head(c.head, kind::CALL, size_of_val(&c), 0);
    assert_ne!(c.function, 0);
    assert_eq!([c.context, c.dst, c.a, c.b], [1, 2, 3, 4]);
    assert_eq!([c.elements, c.element_bytes], [5, 6]);
}

#[test]
fn signal_and_wait() {
    let mut b = batch();
    b.signal(1, 2, 3, Some([4, 5, 6]));
    let c: abi::CommandSignal = read(&b);
    check_head(c.head, kind::SIGNAL, size_of_val(&c), abi::CMD_WORDS);
    assert_eq!((c.flag, c.counter, c.bell, c.words), (1, 2, 3, [4, 5, 6]));
    b.clear();
    b.wait(1, 2, None);
    let c: abi::CommandWait = read(&b);
    check_head(c.head, kind::WAIT, size_of_val(&c), 0);
    assert_eq!((c.flag, c.counter, c.words), (1, 2, [0; 3]));
}

#[test]
fn put() {
    let mut b = batch();
    let mut put = Put {
        src: 1,
        bytes: 2,
        repeat: 3,
        src_stride: 4,
        dst_window: 5,
        dst_offset: 6,
        signal: Some((7, 8)),
        done: Some((9, 10)),
        words: Some([11, 12, 13]),
    };
    b.put(&put);
    let c: abi::CommandPut = read(&b);
    check_head(c.head, kind::PUT, size_of_val(&c), abi::CMD_WORDS);
    assert_eq!([c.src, c.bytes, c.repeat, c.src_stride], [1, 2, 3, 4]);
    assert_eq!((c.dst_window, c.dst_offset), (5, 6));
    assert_eq!((c.signal_window, c.signal_offset), (7, 8));
    assert_eq!(
        (c.done_flag, c.done_counter, c.words),
        (9, 10, [11, 12, 13])
    );
    put.signal = None;
    put.done = None;
    b.clear();
    b.put(&put);
    let c: abi::CommandPut = read(&b);
    assert_eq!(c.signal_window, abi::NO_WINDOW);
    assert_eq!((c.done_flag, c.done_counter), (0, 0));
}

#[test]
fn a_partial_accept_drops_whole_commands_and_rewind_brings_them_back() {
    let mut b = batch();
    b.copy(1, 2, 3);
    b.wait(4, 5, None);
    b.signal(6, 7, 8, None);
    let all = b.words().to_vec();
    assert_eq!(all.len(), 7 + 6 + 7);
    b.drop_front(2);
    assert_eq!((b.len(), b.words()), (1, &all[13..]));
    b.copy(9, 9, 9);
    assert_eq!(b.len(), 2);
    b.drop_front(5);
    assert!(b.is_empty());
    assert_eq!((b.words().len(), b.bytes()), (0, 0));
    b.rewind();
    assert_eq!(b.len(), 4);
    assert_eq!(&b.words()[..20], &all[..]);
}

#[test]
fn a_warm_batch_allocates_nothing() {
    let mut b = batch();
    let fill = |b: &mut Batch| {
        b.clear();
        for i in 0..100 {
            b.copy(i, i, i);
        }
    };
    fill(&mut b);
    let (room, place) = (b.words.capacity(), b.words.as_ptr());
    fill(&mut b);
    assert_eq!((b.words.capacity(), b.words.as_ptr()), (room, place));
}
