//! Which addresses are this machine's own.

use std::net::{IpAddr, Ipv6Addr};

/// Tells whether an address never leaves this machine: `127.0.0.0/8`, `::1`,
/// and the IPv4-mapped `::ffff:127.0.0.0/104`.
///
/// The deprecated form `::a.b.c.d` is not among them. Every question about
/// loopback is answered here, so that two places cannot answer it differently.
///
/// ```
/// use grooveseek::domain::loopback::is_loopback;
///
/// assert!(is_loopback("127.8.0.1".parse().unwrap()));
/// assert!(is_loopback("::ffff:127.0.0.1".parse().unwrap()));
/// assert!(!is_loopback("::127.0.0.1".parse().unwrap()));
/// ```
pub fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => {
            address == Ipv6Addr::LOCALHOST
                || address.to_ipv4_mapped().is_some_and(|mapped| mapped.is_loopback())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // HTTP-07
    #[test]
    fn loopback_is_what_never_leaves_the_machine() {
        let yes = ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::ffff:127.9.9.9"];
        let no = ["0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "::127.0.0.1", "::ffff:10.0.0.1"];
        for address in yes {
            assert!(is_loopback(address.parse().unwrap()), "{address}");
        }
        for address in no {
            assert!(!is_loopback(address.parse().unwrap()), "{address}");
        }
    }
}
