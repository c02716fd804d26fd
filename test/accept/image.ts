import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { readDebianBase, type ImageArch } from '../../cli/release/image-base.ts'
import { packImage } from '../../cli/release/image.ts'
import { version } from '../../cli/version.ts'
import { waitFor } from '../helpers/external-program.ts'
import type { AcceptCheck } from './run.ts'
import { inFolder, run } from './tools.ts'

const root = resolve(import.meta.dir, '../..')
const server = 65532

/** Packs the container image and runs it with the programs of others, without a shell and on a read-only root. */
export const imageCheck: AcceptCheck = {
  name: 'image',
  title: 'the container image: the same digest twice, read by skopeo, run by runc and Podman',
  needs: ['mmdebstrap', 'skopeo', 'umoci', 'runc', 'podman', 'qemu-aarch64-static'],
  run: (print) =>
    inFolder(async (folder) => {
      const targets = { amd64: 'linux-x64', arm64: 'linux-arm64' } satisfies Record<ImageArch, string>
      for (const target of Object.values(targets))
        await run(root, [process.execPath, 'cli/build.ts', '--target', target, '--out', join(folder, target)])
      const pack = () => {
        const platforms = (['amd64', 'arm64'] as const).map((arch) => {
          const content = readFileSync(join(folder, targets[arch], 'otpd'))
          const files = [{ name: 'usr/local/bin/otpd', content, isExecutable: true }]
          return { arch, base: readDebianBase(arch).files, files }
        })
        return packImage({ version, commit: 'none', at: '2026-01-01T00:00:00Z', platforms })
      }
      const image = pack()
      if (!Buffer.from(image).equals(pack())) throw new Error('Two builds gave different bytes.')
      print(`two builds gave the same ${(image.length / 1e6).toFixed(1)} MB`)
      const file = join(folder, 'otpd.tar')
      writeFileSync(file, image)
      const source = `oci-archive:${file}`

      for (const arch of Object.keys(targets)) {
        const text = await run(folder, ['skopeo', '--override-arch', arch, 'inspect', '--config', source])
        const { architecture, config } = JSON.parse(text)
        if (architecture !== arch || config.User !== `${server}:${server}`)
          throw new Error(`skopeo reads another image for ${arch}: ${text}`)
        const layout = `oci:${join(folder, arch)}:otpd`
        await run(folder, ['skopeo', '--override-arch', arch, 'copy', '--quiet', source, layout])
        const bundle = join(folder, `bundle-${arch}`)
        await run(folder, ['umoci', 'unpack', '--image', `${join(folder, arch)}:otpd`, bundle])
      }
      const arm = join(folder, 'bundle-arm64/rootfs')
      const emulated = ['qemu-aarch64-static', '-L', arm, join(arm, 'usr/local/bin/otpd'), 'version']
      print(`arm64, emulated: ${(await run(folder, emulated)).split('\n')[0]}`)

      await runWithRunc(folder, join(folder, 'bundle-amd64'))
      print('runc: serves as 65532 on a read-only root, and is healthy')
      await run(folder, ['skopeo', 'copy', '--all', '--quiet', source, `dir:${join(folder, 'registry')}`])
      await run(folder, ['podman', 'load', '--quiet', '--input', file])
      await runWithPodman(folder, `localhost/otpd:${version}`)
      print('Podman: serves on a volume of its own, is healthy, and ends with 0')
      await buildContainerfile(folder, join(folder, 'linux-x64'))
      await runWithPodman(folder, 'localhost/otpd-own')
      print('the Containerfile of the recipes: the same')
    }),
}

async function runWithRunc(folder: string, bundle: string) {
  const path = join(bundle, 'config.json')
  const config = JSON.parse(readFileSync(path, 'utf8'))
  config.root.readonly = true
  config.process.terminal = false
  delete config.process.rlimits
  for (const mount of config.mounts)
    if (mount.destination === '/var/lib/otpd')
      mount.options.push(`uid=${server}`, `gid=${server}`, 'mode=0700')
  writeFileSync(path, JSON.stringify(config))
  const name = `otpd-accept-${process.pid}`
  const child = Bun.spawn(['runc', 'run', name], {
    cwd: bundle,
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'ignore',
  })
  try {
    await healthy(['runc', 'exec', name, '/usr/local/bin/otpd', 'health'])
    await run(folder, ['runc', 'kill', name, 'TERM'])
    if ((await child.exited) !== 0) throw new Error(`runc ended with ${child.exitCode}.`)
  } finally {
    Bun.spawnSync(['runc', 'delete', '--force', name])
  }
}

// Limits that Podman could not set without all rights.
const limits = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024']

async function runWithPodman(folder: string, image: string) {
  const name = `otpd-accept-${process.pid}`
  const options = ['--detach', '--name', name, '--read-only', '--network=none', ...limits]
  try {
    await run(folder, ['podman', 'run', ...options, image])
    await healthy(['podman', 'exec', name, 'otpd', 'health'])
    const account = 'otpd admin create --email ada@example.com --name Ada --password-stdin'
    const create = `echo correct-horse-battery | podman exec --interactive ${name} ${account}`
    await run(folder, ['sh', '-c', create])
    await run(folder, ['podman', 'stop', name])
    const code = await run(folder, ['podman', 'inspect', '--format', '{{.State.ExitCode}}', name])
    if (code.trim() !== '0') throw new Error(`The container ended with ${code}.`)
  } finally {
    Bun.spawnSync(['podman', 'rm', '--force', '--volumes', name])
    Bun.spawnSync(['podman', 'rmi', '--force', image])
  }
}

/** Builds the image of the recipe, on a Debian that is made here instead of downloaded. */
async function buildContainerfile(folder: string, context: string) {
  const recipe = join(root, '.packaging/recipes/Containerfile')
  const [, base = ''] = /^FROM (\S+)$/m.exec(readFileSync(recipe, 'utf8')) ?? []
  const tar = join(folder, 'debian.tar')
  await run(folder, ['mmdebstrap', '--quiet', '--variant=essential', 'trixie', tar])
  await run(folder, ['podman', 'import', '--quiet', tar, base])
  const options = [
    '--quiet',
    '--pull=never',
    '--network=none',
    '--format=docker',
    '--tag',
    'localhost/otpd-own',
  ]
  try {
    await run(folder, ['podman', 'build', ...options, ...limits, '--file', recipe, context])
  } finally {
    Bun.spawnSync(['podman', 'rmi', base])
  }
}

/** Waits until the command succeeds: it is `otpd health` in the container. */
const healthy = (command: string[]) =>
  waitFor('healthy server', () => (Bun.spawnSync(command).exitCode === 0 ? true : undefined))
