import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { commonFiles } from '../../cli/release/contents.ts'
import { buildPackages } from '../../cli/release/packages.ts'
import { updateRepositories } from '../../cli/release/repositories.ts'
import { hostTarget } from '../../cli/release/targets.ts'
import { binaryPath } from '../helpers/binary.ts'
import { codeBlocks, readDocument } from '../helpers/guide-blocks.ts'
import { installDebian } from './booted-system.ts'
import type { AcceptCheck } from './run.ts'
import { inFolder, run } from './tools.ts'

const root = resolve(import.meta.dir, '../..')
const seconds = 1_767_225_600
const key = 'releases@example.com'

/** Installs and upgrades otpd with the commands of the guide, from a web server with the folder of releases. */
export const repositoriesCheck: AcceptCheck = {
  name: 'repositories',
  title: 'apt and dnf install and upgrade otpd from the folder of releases, in a new Debian',
  needs: ['nfpm', 'apt-ftparchive', 'createrepo_c', 'gpg', 'mmdebstrap', 'chroot', 'mount'],
  run: (print) =>
    inFolder(async (folder) => {
      const system = join(folder, 'system')
      await installDebian(system, ['dnf', 'rpm', 'sudo'])
      const out = join(folder, 'releases')
      mkdirSync(join(folder, 'keys'), { mode: 0o700 })
      process.env['GNUPGHOME'] = join(folder, 'keys')
      const generate = ['--quick-generate-key', key, 'ed25519', 'sign', 'never']
      await run(folder, ['gpg', '--batch', '--passphrase', '', ...generate])
      const web = Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        async fetch(request) {
          const file = Bun.file(join(out, decodeURIComponent(new URL(request.url).pathname)))
          return (await file.exists()) ? new Response(file) : new Response(null, { status: 404 })
        },
      })
      // rpm runs scripts in a namespace of their own, which needs a mount point as the root.
      await run(folder, ['mount', '--bind', system, system])
      await run(folder, ['mount', '-t', 'proc', 'proc', join(system, 'proc')])
      const inside = async (script: string) =>
        (await run(folder, ['chroot', system, 'sh', '-ec', script])).trim()
      const commands = (manager: string) => readCommands(manager, `http://127.0.0.1:${web.port}`)
      try {
        publish(folder, out, ['1.0.0'])
        await inside(commands('apt').replace('install otpd', 'install --yes otpd'))
        print(
          `apt installed: ${await inside("dpkg-query -W -f '${Package} ${Version}' otpd && otpd version")}`,
        )
        publish(folder, out, ['1.0.1', '1.0.0'])
        await inside('apt-get -q update && apt-get -qy install --only-upgrade otpd')
        print(`apt upgraded: ${await inside("dpkg-query -W -f '${Version}' otpd")}`)
        await inside('apt-get -qy purge otpd')

        // Debian has no package of rpm: a repository of its own has the C library and useradd.
        await run(folder, ['sh', '-ec', baseRepository(join(system, 'root/base'))])
        const base = '[base]\nname=base\nbaseurl=file:///root/base\ngpgcheck=0\n'
        await inside(
          `mkdir -p /etc/yum.repos.d && printf '${base.replaceAll('\n', '\\n')}' >/etc/yum.repos.d/base.repo`,
        )
        publish(folder, out, ['1.0.0'])
        await inside(commands('dnf').replace('install otpd', 'install --assumeyes --releasever=1 otpd'))
        print(`dnf installed: ${await inside('rpm -q otpd && otpd version')}`)
        publish(folder, out, ['1.0.1', '1.0.0'])
        await inside('dnf --assumeyes --releasever=1 --refresh upgrade otpd')
        print(`dnf upgraded: ${await inside('rpm -q otpd')}`)
      } finally {
        // Lazily: agents of gpg that dnf started end a little later.
        await run(folder, ['umount', '--lazy', join(system, 'proc'), system])
        await web.stop(true)
        Bun.spawnSync(['gpgconf', '--kill', 'gpg-agent'], { env: process.env })
        delete process.env['GNUPGHOME']
      }
    }),
}

/** Returns the commands of the guide for a package manager, with another address. */
function readCommands(manager: string, url: string): string {
  const block = codeBlocks(readDocument('src/docs/install.md'), 'text', '## apt and dnf').find((text) =>
    text.includes(`sudo ${manager}`),
  )
  if (block === undefined) throw new Error(`The guide has no commands for ${manager}.`)
  return block.replace('https://releases.example.com/otpd', url)
}

/** Makes packages of the built program under other versions, and the repositories of them. */
function publish(folder: string, out: string, versions: string[]) {
  const target = hostTarget()
  if (target === undefined) throw new Error('There are no packages for this machine.')
  const files = commonFiles(root, 'Licences', '2026-01-01')
  for (const version of versions) {
    mkdirSync(join(out, version), { recursive: true })
    const inputs = { root, version, seconds, target, binary: binaryPath, files }
    for (const { name, content } of buildPackages(inputs, join(folder, 'package')))
      writeFileSync(join(out, version, name), content)
  }
  updateRepositories(out, { versions, seconds, key })
}

/** Writes the commands that make an rpm of nothing, which provides what the package of otpd needs. */
const baseRepository = (folder: string) => `mkdir -p ${folder} && cd ${folder}
cat >nfpm.yaml <<'END'
name: base
arch: all
version: 1.0.0
maintainer: Ada <ada@example.com>
provides: ['glibc = 2.41', /usr/sbin/useradd]
END
nfpm package --packager rpm --target . && createrepo_c --quiet .`
