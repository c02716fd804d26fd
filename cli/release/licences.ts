import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A package that has code in the executable. */
export type BundledPackage = {
  name: string
  version: string
  /** SPDX expression. */
  licence: string
  author: string | null
  /** Licence and notice files that the package ships, in one text. */
  text: string | null
  /** Says where its code comes from if it is not installed itself. */
  remark?: string
}

/** The licences whose terms a release meets. Read the terms of another one before you add it. */
const allowedLicences = [
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'MIT-0',
  'Unlicense',
]

/**
 * Packages whose files have others bundled into them, which their manifest names. The values are the licences of the
 * others that are not MIT.
 */
const prebuiltPackages: Record<string, Record<string, string>> = {
  '@scalar/api-reference': { 'fuse.js': 'Apache-2.0', yaml: 'ISC' },
}

/**
 * Lists the packages that a build has put into the executable, by name.
 *
 * @param metafile the build's own list of files
 * @throws Error if a package has a licence that is not on the list
 */
export function listBundledPackages(root: string, metafile: Bun.BuildMetafile): BundledPackage[] {
  const folders = Object.values(metafile.outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => {
      // The last folder counts: a package may have its own copy of another one.
      const [, folder] = /^(.*node_modules\/(?:@[^/]+\/)?[^./@][^/]*)\//.exec(path) ?? []
      return folder === undefined || bytesInOutput === 0 ? [] : [folder]
    }),
  )
  // The guides contain their files as data, which the metafile does not list.
  const prebuilt = Object.keys(prebuiltPackages)
    .map((name) => `node_modules/${name}`)
    .filter((folder) => existsSync(join(root, folder)))
  const packages = [...new Set([...folders, ...prebuilt])].flatMap((folder) =>
    readPackages(join(root, folder)),
  )
  const refused = packages.filter(({ licence }) => !isAllowed(licence))
  if (refused.length > 0)
    throw new Error(
      `Licences that are not on the list of cli/release/licences.ts:\n${refused.map(({ name, licence }) => `  ${name}: ${licence}`).join('\n')}`,
    )
  const byKey = new Map(packages.map((one) => [`${one.name}@${one.version}`, one]))
  return [...byKey].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one)
}

/** Accepts `MIT`, and `(A OR B)` if one of both is on the list. */
const isAllowed = (licence: string) =>
  licence
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some((one) => allowedLicences.includes(one))

type Manifest = Record<string, unknown> & { dependencies?: Record<string, string> }

function readPackages(folder: string): BundledPackage[] {
  const manifest: Manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const own = readPackage(folder, manifest)
  const others = prebuiltPackages[own.name]
  if (others === undefined) return [own]
  const parts = Object.entries(manifest.dependencies ?? {}).map(([name, range]) => ({
    name,
    version: range.replace(/^[~^]/, ''),
    licence: others[name] ?? 'MIT',
    author: null,
    text: null,
    remark: `Part of the prebuilt file of ${own.name} ${own.version}, which asks for version ${range}.`,
  }))
  return [own, ...parts]
}

function readPackage(folder: string, manifest: Manifest): BundledPackage {
  const textOf = (key: string) => (typeof manifest[key] === 'string' ? manifest[key] : null)
  const { author } = manifest
  const named = typeof author === 'object' && author !== null && 'name' in author ? author.name : author
  const texts = readdirSync(folder)
    .filter((file) => /^(licen[cs]e|notice|copying)|\.licen[cs]e\.txt$/i.test(file) && !/\.js$/i.test(file))
    .toSorted()
    .map((file) => readFileSync(join(folder, file), 'utf8').trim())
  return {
    name: textOf('name') ?? '',
    version: textOf('version') ?? '',
    licence: textOf('license') ?? 'none',
    author: typeof named === 'string' ? named.replace(/ *[<(].*/, '') : null,
    text: texts.length > 0 ? texts.join('\n\n') : null,
  }
}

/**
 * Writes THIRD-PARTY-LICENSES: every bundled package and Bun, with the texts of their licences.
 *
 * @param texts folder with the licences that packages name without shipping their text
 */
export function thirdPartyLicences(packages: readonly BundledPackage[], texts: string): string {
  const readText = (name: string) => readFileSync(join(texts, `${name}.txt`), 'utf8').trimEnd()
  const entries = packages.map(({ name, version, licence, author, text, remark }) => {
    const terms = text ?? standardText(licence, author ?? `the authors of ${name}`, readText)
    const title = `${name} ${version} (${licence})`
    return { title, text: remark === undefined ? terms : `${remark}\n\n${terms}` }
  })
  const sections = [
    ...entries,
    { title: `Bun ${Bun.version}`, text: bunNotice },
    { title: 'GNU Library General Public License, version 2', text: readText('LGPL-2') },
    { title: 'GNU Lesser General Public License, version 2.1', text: readText('LGPL-2.1') },
  ]
  const line = '='.repeat(80)
  const body = sections.map(({ title, text }) => `${line}\n${title}\n${line}\n\n${text}\n`).join('\n')
  return `otpd contains the following software.\n\n${body}`
}

function standardText(licence: string, holder: string, readText: (name: string) => string): string {
  if (licence === 'Apache-2.0') return `Copyright ${holder}\n\n${readText(licence)}`
  if (licence === 'MIT') return `Copyright (c) ${holder}\n\n${mitTerms}`
  if (licence === 'ISC') return `Copyright (c) ${holder}\n\n${iscTerms}`
  throw new Error(`A package ships no text of its licence, ${licence}, and there is none here.`)
}

const mitTerms = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`

const iscTerms = `Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted,
provided that the above copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL
IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE.`

/** LGPL parts of Bun: the reader must learn where their sources are, and how to use a changed version of them. */
const bunNotice = `Copyright (c) Oven

${mitTerms}

Bun links these libraries statically, among others:

- JavaScriptCore and WTF of WebKit, LGPL-2.0-or-later and BSD-2-Clause. Sources: https://github.com/oven-sh/WebKit
- tinycc, LGPL-2.1. Sources: https://github.com/oven-sh/tinycc

The complete list with all licences is https://bun.com/docs/project/license, the sources of Bun ${Bun.version} are
https://github.com/oven-sh/bun at revision ${Bun.revision}.

You may change these libraries and use otpd with your version: build Bun with it, then build otpd from its sources with
that Bun, by "compile: { executablePath: 'PATH OF YOUR BUN' }" in cli/build.ts. The two licences follow.`
