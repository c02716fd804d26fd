import { expect, test } from 'bun:test'
import { homebrewFormula } from '../../../cli/release/homebrew.ts'
import { findTarget, targetNames } from '../../../cli/release/targets.ts'

const archives = targetNames.flatMap((name, index) => {
  const target = findTarget(name)
  return target ? [{ target, name: `otpd-1.2.3-${name}.tar.gz`, digest: String(index).repeat(64) }] : []
})

test('the formula for Homebrew has the archive of each machine with its digest, and none of musl', () => {
  const formula = homebrewFormula('1.2.3', 'https://releases.example.com/otpd', archives)
  for (const { target, name, digest } of archives) {
    const source = `url "https://releases.example.com/otpd/1.2.3/${name}"\n      sha256 "${digest}"`
    expect([name, formula.includes(source)]).toEqual([name, !target.isMusl])
  }
  expect(formula.match(/on_arm/g)).toHaveLength(2)
  expect(formula).toContain('run [opt_bin/"otpd", "serve"]')
  const blocks = formula.match(/^.*\b(class|do|def)\b(?!.*\bend\b).*$/gm) ?? []
  expect(formula.match(/^\s*end$/gm)).toHaveLength(blocks.length)
  if (Bun.which('ruby') !== null)
    expect(Bun.spawnSync(['ruby', '-c'], { stdin: Buffer.from(formula) }).success).toBe(true)
})

test('the formula leaves out machines that a release has not', () => {
  const linux = archives.filter(({ target }) => target.name === 'linux-x64')
  const formula = homebrewFormula('1.2.3', 'https://releases.example.com/otpd', linux)
  expect(formula).not.toContain('on_macos')
  expect(formula).not.toContain('on_arm')
})
