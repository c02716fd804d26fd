import { gzip, packTar, type ArchiveFile } from './archive.ts'
import { sha256 } from './checksums.ts'
import type { ImageArch } from './image-base.ts'

/** User and group of the server in the image. */
const owner = 65532
const home = '/var/lib/otpd'

type ImageInputs = {
  version: string
  commit: string
  /** Time of the release, ISO 8601. */
  at: string
  platforms: ReadonlyArray<{ arch: ImageArch; base: readonly ArchiveFile[]; files: readonly ArchiveFile[] }>
}

/**
 * Packs container images into one OCI layout in a tar archive: an index with an image for each processor, each of two layers:
 * the files of Debian, and otpd. The same files and the same time give the same bytes.
 *
 * @see https://github.com/opencontainers/image-spec
 */
export function packImage({ version, commit, at, platforms }: ImageInputs): Uint8Array {
  const seconds = Date.parse(at) / 1000
  const blobs = new Map<string, Uint8Array>()
  const put = (mediaType: string, content: Uint8Array | object) => {
    const bytes = content instanceof Uint8Array ? content : Buffer.from(JSON.stringify(content))
    const digest = sha256(bytes)
    blobs.set(digest, bytes)
    return {
      mediaType: `application/vnd.oci.image.${mediaType}`,
      digest: `sha256:${digest}`,
      size: bytes.length,
    }
  }

  const images = platforms.map(({ arch, base, files }) => {
    const layers = [[...base, ...systemFiles], files].map((layerFiles) => {
      const tar = packTar(withFolders(layerFiles), seconds)
      return { diffId: `sha256:${sha256(tar)}`, ...put('layer.v1.tar+gzip', gzip(tar)) }
    })
    const image = put('config.v1+json', {
      created: at,
      architecture: arch,
      os: 'linux',
      config: runConfig(version, commit),
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
      history: ['Debian: libc6, ca-certificates', `otpd ${version}`].map((text) => ({
        created: at,
        created_by: text,
      })),
    })
    const manifest = put('manifest.v1+json', {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: image,
      layers: layers.map(({ mediaType, digest, size }) => ({ mediaType, digest, size })),
    })
    return { ...manifest, platform: { architecture: arch, os: 'linux' } }
  })
  const index = put('index.v1+json', indexOf(images))
  // The names that Podman and containerd give the image when they load it.
  const annotations = {
    'org.opencontainers.image.ref.name': `otpd:${version}`,
    'io.containerd.image.name': `localhost/otpd:${version}`,
  }
  const tagged = { ...index, annotations }
  return packTar(
    [
      { name: 'oci-layout', content: Buffer.from('{"imageLayoutVersion":"1.0.0"}') },
      { name: 'index.json', content: Buffer.from(JSON.stringify(indexOf([tagged]))) },
      ...[...blobs].map(([digest, content]) => ({ name: `blobs/sha256/${digest}`, content })),
    ],
    seconds,
  )
}

const indexOf = (manifests: object[]) => ({
  schemaVersion: 2,
  mediaType: 'application/vnd.oci.image.index.v1+json',
  manifests,
})

const emptyFile = Buffer.alloc(0)

/** Files of a minimal system: a user, the lookup of names, and folders to write to. */
const systemFiles: readonly ArchiveFile[] = [
  {
    name: 'etc/passwd',
    content: Buffer.from(
      `root:x:0:0:root:/root:/sbin/nologin\notpd:x:${owner}:${owner}:otpd:${home}:/sbin/nologin\n`,
    ),
  },
  { name: 'etc/group', content: Buffer.from(`root:x:0:\notpd:x:${owner}:\n`) },
  { name: 'etc/nsswitch.conf', content: Buffer.from('hosts: files dns\n') },
  { name: 'tmp/', content: emptyFile, mode: 0o1777 },
  // A volume starts with the owner and the mode of the folder that it covers.
  { name: `${home.slice(1)}/`, content: emptyFile, mode: 0o700, owner },
]

const runConfig = (version: string, commit: string) => ({
  User: `${owner}:${owner}`,
  Entrypoint: ['/usr/local/bin/otpd'],
  Cmd: ['serve', '--log-format', 'json'],
  Env: [
    'PATH=/usr/local/bin',
    `HOME=${home}`,
    `OTPD_DATA_DIR=${home}`,
    'OTPD_LISTEN=0.0.0.0:8080',
    'SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt',
  ],
  ExposedPorts: { '8080/tcp': {} },
  Volumes: { [home]: {} },
  WorkingDir: home,
  StopSignal: 'SIGTERM',
  // Not part of OCI, but Docker and Podman read it. Durations are nanoseconds.
  Healthcheck: {
    Test: ['CMD', '/usr/local/bin/otpd', 'health'],
    Interval: 30e9,
    Timeout: 5e9,
    StartPeriod: 60e9,
    Retries: 3,
  },
  Labels: {
    'org.opencontainers.image.title': 'otpd',
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.revision': commit,
    'org.opencontainers.image.licenses': 'MIT',
  },
})

/** Adds the folders above each file, and sorts by name, so that a folder comes before its files. */
function withFolders(files: readonly ArchiveFile[]): ArchiveFile[] {
  const given = new Set(files.map(({ name }) => name))
  const folders = files.flatMap(({ name }) => {
    const parts = name.split('/').slice(0, -1)
    return parts.map((_, index) => `${parts.slice(0, index + 1).join('/')}/`)
  })
  const added = [...new Set(folders)]
    .filter((name) => !given.has(name))
    .map((name) => ({ name, content: emptyFile }))
  return [...files, ...added].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}
