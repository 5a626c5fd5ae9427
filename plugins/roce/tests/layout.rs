//! The mirrored structs and numbers against the machine's own verbs.h, where it is installed.

use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

use unisono_plugin_roce::sys::abi;

const HEADER: &str = "/usr/include/infiniband/verbs.h";

/// One line of C for each fact, and what the mirror says.
fn facts() -> Vec<(String, usize)> {
    let mut facts = Vec::new();
    macro_rules! fields {
        ($mirror:ident, $c:literal: $($field:ident)*) => {
            $(facts.push((
                format!("offsetof(struct {}, {})", $c, stringify!($field)),
                offset_of!(abi::$mirror, $field),
            ));)*
        };
    }
    macro_rules! whole {
        ($mirror:ident, $c:literal: $($field:ident)*) => {
            facts.push((format!("sizeof(struct {})", $c), size_of::<abi::$mirror>()));
            fields!($mirror, $c: $($field)*);
        };
    }
    macro_rules! numbers {
        ($($value:expr => $c:ident)*) => {
            $(facts.push((stringify!($c).to_owned(), $value as usize));)*
        };
    }
    whole!(Device, "ibv_device": node_type transport_type name dev_name dev_path ibdev_path);
    whole!(ContextOps, "ibv_context_ops": poll_cq req_notify_cq post_send post_recv);
    fields!(Context, "ibv_context": device ops cmd_fd async_fd num_comp_vectors);
    fields!(Pd, "ibv_pd": context handle);
    whole!(Mr, "ibv_mr": context pd addr length handle lkey rkey);
    whole!(CompChannel, "ibv_comp_channel": context fd refcnt);
    fields!(Cq, "ibv_cq": context channel cq_context handle cqe);
    fields!(Qp, "ibv_qp": context qp_context pd send_cq recv_cq srq handle qp_num state qp_type);
    whole!(DeviceAttr, "ibv_device_attr": fw_ver max_mr_size max_qp_wr max_sge max_cqe atomic_cap
        max_pkeys local_ca_ack_delay phys_port_cnt);
    whole!(PortAttr, "ibv_port_attr": state max_mtu active_mtu gid_tbl_len max_msg_sz lid sm_lid
        active_width active_speed phys_state link_layer flags);
    whole!(QpCap, "ibv_qp_cap": max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data);
    whole!(QpInitAttr, "ibv_qp_init_attr": qp_context send_cq recv_cq srq cap qp_type sq_sig_all);
    whole!(GlobalRoute, "ibv_global_route": dgid flow_label sgid_index hop_limit traffic_class);
    whole!(AhAttr, "ibv_ah_attr": grh dlid sl src_path_bits static_rate is_global port_num);
    whole!(QpAttr, "ibv_qp_attr": qp_state path_mtu qkey rq_psn sq_psn dest_qp_num qp_access_flags
        cap ah_attr alt_ah_attr pkey_index max_rd_atomic max_dest_rd_atomic min_rnr_timer port_num
        timeout retry_cnt rnr_retry rate_limit);
    whole!(Sge, "ibv_sge": addr length lkey);
    whole!(SendWr, "ibv_send_wr": wr_id next sg_list num_sge opcode send_flags imm_data);
    whole!(RecvWr, "ibv_recv_wr": wr_id next sg_list num_sge);
    whole!(Wc, "ibv_wc": wr_id status opcode vendor_err byte_len imm_data qp_num src_qp wc_flags
        pkey_index slid sl dlid_path_bits);
    whole!(AsyncEvent, "ibv_async_event": element event_type);
    for (c, mirror) in [
        ("wr.rdma.remote_addr", offset_of!(abi::SendWr, remote_addr)),
        ("wr.rdma.rkey", offset_of!(abi::SendWr, rkey)),
    ] {
        facts.push((format!("offsetof(struct ibv_send_wr, {c})"), mirror));
    }
    numbers! {
        abi::access::LOCAL_WRITE => IBV_ACCESS_LOCAL_WRITE
        abi::access::REMOTE_WRITE => IBV_ACCESS_REMOTE_WRITE
        abi::QPT_RC => IBV_QPT_RC
        abi::qp_state::RESET => IBV_QPS_RESET
        abi::qp_state::INIT => IBV_QPS_INIT
        abi::qp_state::RTR => IBV_QPS_RTR
        abi::qp_state::RTS => IBV_QPS_RTS
        abi::qp_state::ERR => IBV_QPS_ERR
        abi::qp_mask::STATE => IBV_QP_STATE
        abi::qp_mask::ACCESS_FLAGS => IBV_QP_ACCESS_FLAGS
        abi::qp_mask::PKEY_INDEX => IBV_QP_PKEY_INDEX
        abi::qp_mask::PORT => IBV_QP_PORT
        abi::qp_mask::AV => IBV_QP_AV
        abi::qp_mask::PATH_MTU => IBV_QP_PATH_MTU
        abi::qp_mask::TIMEOUT => IBV_QP_TIMEOUT
        abi::qp_mask::RETRY_CNT => IBV_QP_RETRY_CNT
        abi::qp_mask::RNR_RETRY => IBV_QP_RNR_RETRY
        abi::qp_mask::RQ_PSN => IBV_QP_RQ_PSN
        abi::qp_mask::MAX_QP_RD_ATOMIC => IBV_QP_MAX_QP_RD_ATOMIC
        abi::qp_mask::MIN_RNR_TIMER => IBV_QP_MIN_RNR_TIMER
        abi::qp_mask::SQ_PSN => IBV_QP_SQ_PSN
        abi::qp_mask::MAX_DEST_RD_ATOMIC => IBV_QP_MAX_DEST_RD_ATOMIC
        abi::qp_mask::DEST_QPN => IBV_QP_DEST_QPN
        abi::wr::RDMA_WRITE => IBV_WR_RDMA_WRITE
        abi::wr::RDMA_WRITE_WITH_IMM => IBV_WR_RDMA_WRITE_WITH_IMM
        abi::wr::SEND => IBV_WR_SEND
        abi::send_flag::SIGNALED => IBV_SEND_SIGNALED
        abi::send_flag::INLINE => IBV_SEND_INLINE
        abi::wc_status::LOC_LEN_ERR => IBV_WC_LOC_LEN_ERR
        abi::wc_status::LOC_PROT_ERR => IBV_WC_LOC_PROT_ERR
        abi::wc_status::WR_FLUSH_ERR => IBV_WC_WR_FLUSH_ERR
        abi::wc_status::REM_INV_REQ_ERR => IBV_WC_REM_INV_REQ_ERR
        abi::wc_status::REM_ACCESS_ERR => IBV_WC_REM_ACCESS_ERR
        abi::wc_status::REM_OP_ERR => IBV_WC_REM_OP_ERR
        abi::wc_status::RETRY_EXC_ERR => IBV_WC_RETRY_EXC_ERR
        abi::wc_status::RNR_RETRY_EXC_ERR => IBV_WC_RNR_RETRY_EXC_ERR
        abi::wc_status::FATAL_ERR => IBV_WC_FATAL_ERR
        abi::wc_status::RESP_TIMEOUT_ERR => IBV_WC_RESP_TIMEOUT_ERR
        abi::wc_opcode::RECV => IBV_WC_RECV
        abi::wc_opcode::RECV_RDMA_WITH_IMM => IBV_WC_RECV_RDMA_WITH_IMM
        abi::WC_WITH_IMM => IBV_WC_WITH_IMM
        abi::event::DEVICE_FATAL => IBV_EVENT_DEVICE_FATAL
        abi::event::PORT_ACTIVE => IBV_EVENT_PORT_ACTIVE
        abi::event::PORT_ERR => IBV_EVENT_PORT_ERR
        abi::event::GID_CHANGE => IBV_EVENT_GID_CHANGE
        abi::PORT_ACTIVE => IBV_PORT_ACTIVE
        abi::link_layer::INFINIBAND => IBV_LINK_LAYER_INFINIBAND
        abi::link_layer::ETHERNET => IBV_LINK_LAYER_ETHERNET
    }
    facts
}

#[test]
fn the_mirror_is_the_header() {
    if !Path::new(HEADER).exists() {
        println!("skipped: {HEADER} is not installed (libibverbs-dev)");
        return;
    }
    let facts = facts();
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("facts.c"), folder.path().join("facts"));
    let lines: String = facts
        .iter()
        .map(|(c, _)| format!("printf(\"%zu\\n\", (size_t)({c}));\n"))
        .collect();
    let text = format!(
        "#include <infiniband/verbs.h>\n#include <stddef.h>\n#include <stdio.h>\n\
         int main(void) {{\n{lines}return 0;\n}}\n"
    );
    std::fs::write(&source, text).expect("a file");
    let compiled = Command::new("cc")
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output();
    let compiled = compiled.expect("a C compiler");
    let complaint = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{complaint}");
    let output = Command::new(&program).output().expect("the program runs");
    let output = String::from_utf8(output.stdout).expect("numbers");
    let found: Vec<usize> = output.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(found.len(), facts.len());
    for ((c, mirror), header) in facts.iter().zip(found) {
        assert_eq!(*mirror, header, "{c}");
    }
}
