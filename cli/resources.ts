/** The fields of the API's resources that the commands show. */

export type Project = {
  id: string
  name: string
  description: string | null
  applicationCount: number
  createdAt: string
}

export type Application = {
  id: string
  name: string
  projectId: string
  environment: 'live' | 'test'
  status: 'active' | 'disabled'
  createdAt: string
}

/** The answer of the create call, the only one that holds every credential. */
export type CreatedApplication = Pick<Application, 'id' | 'name' | 'environment' | 'status'> & {
  clientId: string
  clientSecret: string
  apiKey: string
  webhookSecret: string
  warning: string
}

export type SentOtp = {
  requestId: string
  phone: string
  status: string
  expiresAt: string
  /** Test applications only. */
  code?: string
}

export type VerifiedOtp = { requestId: string; phone: string; status: string; verifiedAt: string }

export type InboxItem = {
  requestId: string | null
  phone: string
  code: string | null
  sentAt: string
  expiresAt: string
}

export type Developer = {
  id: string
  email: string | null
  name: string | null
  company: string | null
  plan: string
  virtualPhoneNumber: string
}
