import { Database } from 'bun:sqlite'
import { expect, spyOn, test } from 'bun:test'
import { createTestService } from '../helpers/service.ts'

test('looking up refresh tokens, which anyone may do at any rate, prepares no statement again', async () => {
  const service = await createTestService()
  const { refreshTokens } = service.store.read
  await refreshTokens.find('unknown')
  const prepare = spyOn(Database.prototype, 'prepare')
  try {
    for (let count = 0; count < 5; count++) expect(await refreshTokens.find('unknown')).toBeUndefined()
    expect(prepare).not.toHaveBeenCalled()
  } finally {
    prepare.mockRestore()
    await service.dispose()
  }
})
