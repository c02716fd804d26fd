import { Database } from 'bun:sqlite'
import { expect, spyOn, test } from 'bun:test'
import { createTestService } from '../helpers/service.ts'

test('looking up refresh and setup tokens, which anyone may do at any rate, prepares no statement again', async () => {
  const service = await createTestService()
  const { refreshTokens, setupTokens } = service.store.read
  await refreshTokens.find('unknown')
  await setupTokens.isValid('unknown', 0)
  const prepare = spyOn(Database.prototype, 'prepare')
  try {
    for (let count = 0; count < 5; count++) {
      expect(await refreshTokens.find('unknown')).toBeUndefined()
      expect(await setupTokens.isValid('unknown', 0)).toBe(false)
    }
    expect(prepare).not.toHaveBeenCalled()
  } finally {
    prepare.mockRestore()
    await service.dispose()
  }
})
