import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { packForNpm } from '../../../cli/release/npm.ts'
import { hostTarget } from '../../../cli/release/targets.ts'

const root = resolve(import.meta.dir, '../../..')

/** Reads the package.json of each package that is made from a client with this one. */
function manifestsFrom(client: object) {
  const target = hostTarget()
  if (!target) throw new Error('there is no target for this machine')
  const folder = mkdtempSync(join(tmpdir(), 'otpd-npm-'))
  const binary = join(folder, 'otpd')
  writeFileSync(binary, 'program')
  const file = { name: 'package.json', content: Buffer.from(JSON.stringify(client)) }
  const packages = packForNpm({ root, version: '9.9.9', seconds: 0 }, [{ target, binary }], [file], [])
  const manifests = packages.map(({ name, content }) => {
    const path = join(folder, name)
    writeFileSync(path, content)
    return JSON.parse(Bun.spawnSync(['tar', '-xzOf', path, 'package/package.json']).stdout.toString())
  })
  rmSync(folder, { recursive: true })
  return { manifests, platform: `@otpd/${target.name}` }
}

test('the packages name the repository of the project, and none if it has none', () => {
  const repository = { type: 'git', url: 'git+https://git.example/otpd.git' }
  const { manifests, platform } = manifestsFrom({ name: 'otpd', repository })
  expect(manifests.map((one) => [one.name, one.repository])).toEqual([
    ['otpd', repository],
    ['otpd', repository],
    [platform, repository],
  ])
  expect(manifests[1].optionalDependencies).toEqual({ [platform]: '9.9.9' })
  for (const manifest of manifestsFrom({ name: 'otpd' }).manifests)
    expect(manifest).not.toHaveProperty('repository')
})
