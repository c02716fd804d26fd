import { hkdfSync } from 'node:crypto'
import { backupSealKey } from '../domain/model/keys.ts'

const derive = (masterKey: Uint8Array, salt: Uint8Array | string, label: string) =>
  Buffer.from(hkdfSync('sha256', backupSealKey(masterKey), salt, `otpd ${label} v1`, 32))

/** Derives the key of one sealed backup, so that its chunks can be numbered instead of getting random nonces. */
export const sealedBackupKey = (masterKey: Uint8Array, salt: Uint8Array) =>
  derive(masterKey, salt, 'sealed backup')

/** Derives the key that seals the notes next to sealed backups. */
export const backupNoteKey = (masterKey: Uint8Array) => derive(masterKey, '', 'backup note')
