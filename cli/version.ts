import manifest from '../package.json' with { type: 'json' }

/** Version of the server, the command line and the package. */
export const { version } = manifest

/** Source of the executable; null if it runs from source. `cli/build.ts` puts the values here. */
export const build = {
  commit: process.env.OTPD_BUILD_COMMIT || null,
  /** Day of the commit, like `2026-11-22`. */
  date: process.env.OTPD_BUILD_DATE || null,
  /** Machine that it was built for, like `linux-x64-musl`. */
  target: process.env.OTPD_BUILD_TARGET || null,
  /** Public key that signs releases; null in a build without one. */
  releaseKey: process.env.OTPD_BUILD_RELEASE_KEY || null,
  /** Address of the releases; null in a build without one. */
  releaseUrl: process.env.OTPD_BUILD_RELEASE_URL || null,
}
