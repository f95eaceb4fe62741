//! Functions of vectors that the layers need, as exact as bytes are worth.

use rten_simd::ops::{BitOps, IntOps, NumOps};
use rten_simd::{Isa, Simd};

/// The largest of a vector.
#[inline(always)]
pub(super) fn across<I: Isa>(isa: I, x: I::F32) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 16];
    isa.f32().store(x, &mut lanes);
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] =
                if lanes[lane] > lanes[lane + half] { lanes[lane] } else { lanes[lane + half] };
        }
    }
    lanes[0]
}

/// Where the normal distribution is as good as complete.
const FAR: f32 = 4.25;
/// `(Phi(x) - 1/2) / x` by powers of `x^2`, up to `FAR`: Gelu is within 1e-4, a hundredth of the
/// step from byte to byte.
const PHI: [f32; 8] = [
    0.398_420_04,
    -0.065_453_49,
    0.009_257_819_5,
    -0.000_940_446_74,
    6.552_698e-5,
    -2.938_795e-6,
    7.570_806_6e-8,
    -8.460_371e-10,
];

/// Gelu (Hendrycks and Gimpel 2016).
#[inline(always)]
pub(super) fn gelu<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let ops = isa.f32();
    let near = ops.clamp(x, ops.splat(-FAR), ops.splat(FAR));
    let square = ops.mul(near, near);
    let mut sum = ops.splat(PHI[7]);
    for factor in PHI[..7].iter().rev() {
        sum = ops.mul_add(sum, square, ops.splat(*factor));
    }
    ops.mul(x, ops.mul_add(near, sum, ops.splat(0.5)))
}

/// `2^f` by powers of `f`, from -1/2 to 1/2, within 3e-6.
const POWER: [f32; 5] = [0.999_999_3, 0.693_121_8, 0.240_247_44, 0.055_917_863, 0.009_570_102];
/// A number of this size has its ones in the lowest bit.
const ONES: f32 = 12_582_912.0;

/// `2^x` of what is not above zero, and no less than what the smallest exponent has.
#[inline(always)]
pub(super) fn power<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let (ops, integers) = (isa.f32(), isa.i32());
    let x = ops.max(x, ops.splat(-126.0));
    let whole = ops.add(x, ops.splat(ONES));
    let part = ops.sub(x, ops.sub(whole, ops.splat(ONES)));
    let mut sum = ops.splat(POWER[4]);
    for factor in POWER[..4].iter().rev() {
        sum = ops.mul_add(sum, part, ops.splat(*factor));
    }
    let exponent = integers.shift_left::<23>(whole.reinterpret_cast::<I::I32>());
    integers.add(sum.reinterpret_cast::<I::I32>(), exponent).reinterpret_cast()
}

#[cfg(test)]
mod tests {
    use rten_simd::SimdOp;

    use super::*;

    /// Gelu and the power of each number.
    struct Both<'a>(&'a [f32]);

    impl SimdOp for Both<'_> {
        type Output = Vec<(f32, f32)>;

        #[inline(always)]
        fn eval<I: Isa>(self, isa: I) -> Self::Output {
            let of = |x: &f32| {
                let x = isa.f32().splat(*x);
                (gelu(isa, x).to_array()[0], power(isa, x).to_array()[0])
            };
            self.0.iter().map(of).collect()
        }
    }

    /// The normal distribution's density, summed up.
    fn phi(x: f64) -> f64 {
        let step = x / 2_000.0;
        let density = |at: f64| (-at * at / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        0.5 + (0..2_000).map(|n| density((f64::from(n) + 0.5) * step) * step).sum::<f64>()
    }

    #[test]
    fn they_are_what_they_should_be() {
        let numbers: Vec<f32> = (-900..900_i16).map(|n| f32::from(n) / 100.0).collect();
        for (x, (gelu, power)) in numbers.iter().zip(Both(&numbers).dispatch()) {
            let expected = f64::from(*x) * phi(f64::from(*x));
            assert!((f64::from(gelu) - expected).abs() < 2e-4, "{x}: {gelu} and not {expected}");
            assert!((power / x.exp2() - 1.0).abs() < 1e-5, "{x}: {power}");
        }
        // Far away, where products of large numbers are near each other.
        let far = Both(&[-1_000.0, 1_000.0]).dispatch();
        assert!(
            far[0].0.abs() < 0.01 && (far[1].0 - 1_000.0).abs() < 0.01 && far[0].1 < 1e-37,
            "{far:?}"
        );
        assert!((0.0..1e-37).contains(&Both(&[f32::MIN]).dispatch()[0].1));
    }
}
