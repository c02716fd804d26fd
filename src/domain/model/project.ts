export type Project = {
  id: string
  developerId: string
  name: string
  /** Up to 280 characters. */
  description: string | null
  createdAt: number
  updatedAt: number
}

export type ProjectWithCount = Project & { applicationCount: number }

export type ProjectChanges = { name?: string | undefined; description?: string | null | undefined }
