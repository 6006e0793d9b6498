//! Telling file systems whose changes other machines make, too.

use std::path::Path;

/// Tells whether a folder lies on a file system that does not report what is
/// changed on it from elsewhere. Where the system does not say, it does not.
#[cfg(target_os = "linux")]
pub(super) fn is_on_network(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|facts| reports_no_changes(magic(facts.f_type)))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_on_network(_path: &Path) -> bool {
    false
}

/// The kinds of file systems by the number that Linux has for each. FUSE stands
/// for whatever a program makes of it, sshfs and virtiofs among others.
#[cfg(target_os = "linux")]
const NETWORK: [(u32, &str); 22] = [
    (0x0000_517B, "smb"),
    (0x0000_564C, "ncp"),
    (0x0000_6969, "nfs"),
    (0x0102_1997, "9p"),
    (0x0116_1970, "gfs2"),
    (0x0131_11A8, "ibrix"),
    (0x0BD0_0BD0, "lustre"),
    (0x00C3_6400, "ceph"),
    (0x1983_0326, "beegfs"),
    (0x4750_4653, "gpfs"),
    (0x5346_414F, "afs"),
    (0x6163_6673, "acfs"),
    (0x6573_5546, "fuse"),
    (0x6B41_4653, "kafs"),
    (0x7375_7245, "coda"),
    (0x7461_636F, "ocfs2"),
    (0x786F_4256, "vboxsf"),
    (0x7C7C_6673, "parallels"),
    (0xAAD7_AAEA, "panfs"),
    (0xBACB_ACBC, "vmhgfs"),
    (0xFE53_4D42, "smb2"),
    (0xFF53_4D42, "cifs"),
];

#[cfg(target_os = "linux")]
fn reports_no_changes(magic: u32) -> bool {
    NETWORK.iter().any(|(known, _)| *known == magic)
}

/// The number as it is written down, of whatever width and sign it comes in.
#[cfg(target_os = "linux")]
fn magic<T: TryInto<i128>>(word: T) -> u32 {
    let word = word.try_into().unwrap_or(0) & i128::from(u32::MAX);
    u32::try_from(word).unwrap_or(0)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    // IDX-B20
    #[test]
    fn network_file_systems_are_told_from_local_ones() {
        for (kind, magic) in [("nfs", 0x6969), ("fuse", 0x6573_5546), ("cifs", 0xFF53_4D42)] {
            assert!(reports_no_changes(magic), "{kind}");
        }
        // ext4, XFS, btrfs, ZFS, tmpfs, overlayfs, FAT.
        for magic in
            [0xEF53, 0x5846_5342, 0x9123_683E, 0x2FC1_2FC1, 0x0102_1994, 0x794C_7630, 0x4D44]
        {
            assert!(!reports_no_changes(magic), "{magic:x}");
        }
        assert!(!is_on_network(Path::new("/proc")) && !is_on_network(Path::new("/nowhere at all")));
    }

    // IDX-B20
    #[test]
    fn a_number_is_the_same_in_whatever_width_the_system_has_it() {
        assert_eq!(magic(-11_317_950_i32), 0xFF53_4D42);
        assert_eq!(magic(0xFF53_4D42_i64), 0xFF53_4D42);
        assert_eq!(magic(0xFF53_4D42_u32), 0xFF53_4D42);
    }
}
