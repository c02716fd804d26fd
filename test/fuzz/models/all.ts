import { admissionModel } from './admissions.ts'
import { credentialModel } from './credentials.ts'
import { listModel } from './lists.ts'
import { sharedTransactionModel } from './shared-transactions.ts'
import { phoneModel } from './phones.ts'

/** Each part of the memory of a server, and all of them at once. */
export const models = [admissionModel, credentialModel, listModel, phoneModel, sharedTransactionModel]
