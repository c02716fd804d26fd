import { expect, test } from 'bun:test'
import { linkDialog } from '../../../cli/console/screens/page-dialog.ts'
import { renderConsole } from '../../helpers/console-render.tsx'

const credentials = { clientId: '', clientSecret: '', apiKey: '', source: '' }

test.each([
  ['https://shop.example/', 'https://shop.example'],
  ['https://', undefined],
])('the form for a link to the page offers to return to %s', async (initial, origin) => {
  const { console, close } = renderConsole(<></>)
  const dialog = linkDialog(console, { name: 'shop' }, credentials, origin)
  expect(dialog).toMatchObject({ fields: [{ name: 'returnUrl', initial }, {}, {}, {}, {}] })
  await close()
})
