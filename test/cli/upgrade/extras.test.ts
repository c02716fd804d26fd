import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { extras } from '../../../cli/upgrade/extras.ts'
import { installScriptPath } from '../../helpers/install-script.ts'

test('an upgrade writes the files again that install.sh writes', () => {
  const [, list = ''] =
    /^extras\(\) \{\n {2}cat <<'END'\n(.*?)\nEND\n/ms.exec(readFileSync(installScriptPath, 'utf8')) ?? []
  expect(extras.map(({ args, file }) => `${args.join(' ')}:${file}`)).toEqual(list.split('\n'))
})
