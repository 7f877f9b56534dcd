use moraine_core::{evaluate, Error};

fn text(line: &str) -> String {
    evaluate(line).unwrap().to_string()
}

#[test]
fn converts() {
    assert_eq!(text("72 km/h in m/s"), "20 m/s");
    assert_eq!(text("3 mile / 20 min in mph"), "9 mph");
    assert_eq!(text("5 ft + 10 inch in cm"), "177.8 cm");
    assert_eq!(text("9.81 kg m / s^2 in N"), "9.81 N");
    assert_eq!(text("-2^2 + 2 * (3 - 1)"), "0 (plain)");
}

#[test]
fn refuses() {
    assert!(matches!(evaluate("1 m + 1 s"), Err(Error::Mismatch(..))));
    assert_eq!(evaluate("2 furlong"), Err(Error::UnknownUnit("furlong".into())));
    assert_eq!(evaluate("2^0.5"), Err(Error::BadExponent));
    assert!(matches!(evaluate("(1 + 2"), Err(Error::Syntax { at: 6, .. })));
    assert!(matches!(evaluate("2 $"), Err(Error::Syntax { at: 2, .. })));
}
