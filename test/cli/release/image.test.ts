import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packImage } from '../../../cli/release/image.ts'

const digestOf = (content: Uint8Array) => new Bun.CryptoHasher('sha256').update(content).digest('hex')
const base = [{ name: 'lib64/loader', content: Buffer.from('loader'), isExecutable: true }]
const pack = (text = 'program') =>
  packImage({
    version: '1.2.3',
    commit: 'c0ffee',
    at: '2026-01-01T00:00:00Z',
    platforms: (['amd64', 'arm64'] as const).map((arch) => ({
      arch,
      base,
      files: [{ name: 'usr/local/bin/otpd', content: Buffer.from(`${text} ${arch}`), isExecutable: true }],
    })),
  })

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'otpd-image-'))))
afterEach(() => rmSync(folder, { recursive: true }))

const untar = (archive: Uint8Array, ...options: string[]) => {
  writeFileSync(join(folder, 'archive'), archive)
  const { stdout, stderr } = Bun.spawnSync(['tar', ...options, '-f', 'archive'], { cwd: folder })
  expect(stderr.toString()).toBe('')
  return stdout.toString()
}
const blob = (digest: string) => readFileSync(join(folder, 'blobs', digest.replace(':', '/')))
const json = (content: Buffer) => JSON.parse(content.toString())

test('the same files give the same image, and other files another one', () => {
  expect(digestOf(pack())).toBe(digestOf(pack()))
  expect(digestOf(pack('another'))).not.toBe(digestOf(pack()))
})

test('every digest and size of the layout is right, down to the files of each processor', () => {
  untar(pack(), '-x')
  const { manifests } = json(readFileSync(join(folder, 'index.json')))
  expect(manifests).toMatchObject([{ annotations: { 'org.opencontainers.image.ref.name': 'otpd:1.2.3' } }])
  const index = json(blob(manifests[0].digest))
  expect(index.manifests.map((one: { platform: object }) => one.platform)).toEqual([
    { architecture: 'amd64', os: 'linux' },
    { architecture: 'arm64', os: 'linux' },
  ])
  for (const { digest, platform } of index.manifests) {
    const manifest = json(blob(digest))
    for (const part of [manifest.config, ...manifest.layers]) {
      const content = blob(part.digest)
      expect([`sha256:${digestOf(content)}`, content.length]).toEqual([part.digest, part.size])
    }
    const config = json(blob(manifest.config.digest))
    expect(config).toMatchObject({ architecture: platform.architecture, config: { User: '65532:65532' } })
    const layers = manifest.layers.map((layer: { digest: string }) => Bun.gunzipSync(blob(layer.digest)))
    expect(layers.map((layer: Uint8Array) => `sha256:${digestOf(layer)}`)).toEqual(config.rootfs.diff_ids)
    untar(layers[1], '-x')
    expect(readFileSync(join(folder, 'usr/local/bin/otpd'), 'utf8')).toBe(`program ${platform.architecture}`)
    expect(statSync(join(folder, 'usr/local/bin/otpd')).mode & 0o777).toBe(0o755)
    const listed = untar(layers[0], '-t', '--verbose', '--numeric-owner').split('\n')
    expect(listed.find((line) => line.endsWith(' var/lib/otpd/'))).toStartWith('drwx------ 65532/65532 ')
    expect(listed.find((line) => line.endsWith(' tmp/'))).toStartWith('drwxrwxrwt 0/0 ')
    expect(listed.find((line) => line.endsWith(' lib64/'))).toStartWith('drwxr-xr-x 0/0 ')
  }
})
