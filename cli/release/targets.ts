/** A machine that otpd is built for. */
export type Target = {
  name: string
  os: 'linux' | 'darwin'
  arch: 'x64' | 'arm64'
  isMusl: boolean
}

/** The targets of a release, in the order in which they are built. */
export const targets: readonly Target[] = [
  { name: 'linux-x64', os: 'linux', arch: 'x64', isMusl: false },
  { name: 'linux-arm64', os: 'linux', arch: 'arm64', isMusl: false },
  { name: 'linux-x64-musl', os: 'linux', arch: 'x64', isMusl: true },
  { name: 'linux-arm64-musl', os: 'linux', arch: 'arm64', isMusl: true },
  { name: 'darwin-arm64', os: 'darwin', arch: 'arm64', isMusl: false },
]

/**
 * Built on such a Mac only: Bun signs the executable for arm64 after it embeds the program, and leaves its own signature,
 * which is then wrong, in the one for x64.
 */
const unreleased: readonly Target[] = [{ name: 'darwin-x64', os: 'darwin', arch: 'x64', isMusl: false }]

export const targetNames = targets.map(({ name }) => name)

/** Finds a target of a release by its name. */
export const findTarget = (name: string) => targets.find((target) => target.name === name)

/** Returns the target that this process runs on, or undefined if otpd is not built for it. */
export function hostTarget(): Target | undefined {
  const isMusl = process.platform === 'linux' && !hasGlibc()
  return [...targets, ...unreleased].find(
    ({ os, arch, isMusl: musl }) => os === process.platform && arch === process.arch && musl === isMusl,
  )
}

function hasGlibc(): boolean {
  const report: unknown = process.report.getReport()
  const header = typeof report === 'object' && report !== null && 'header' in report ? report.header : null
  return typeof header === 'object' && header !== null && 'glibcVersionRuntime' in header
}
