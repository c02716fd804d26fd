import type { Project } from '../../client/resources.ts'
import { required, type Dialog, type DialogNeeds } from '../console-context.ts'

const projectFields = (name: string, description: string) => [
  { name: 'name', label: 'name', initial: name, check: required },
  { name: 'description', label: 'description', initial: description },
]

/**
 * Creates a project.
 *
 * @param onCreated called with the id of the new project
 */
export const newProjectDialog = ({ api, toast }: DialogNeeds, onCreated: (id: string) => void): Dialog => ({
  kind: 'form',
  title: 'New project',
  lines: ['A project groups the applications of one product.'],
  fields: projectFields('', ''),
  verb: 'create',
  async submit({ name = '', description = '' }) {
    const body = { name, ...(description !== '' && { description }) }
    const { data } = await api.asDeveloper('POST', '/v1/projects', { body })
    toast('project created; n adds an application', 'good')
    onCreated(data.id)
  },
})

/** Edits name and description of a project. */
export const editProjectDialog = ({ api, toast }: DialogNeeds, project: Project): Dialog => ({
  kind: 'form',
  title: 'Edit project',
  fields: projectFields(project.name, project.description ?? ''),
  verb: 'save',
  async submit({ name = '', description = '' }) {
    const body = { name, description: description || null }
    await api.asDeveloper('PATCH', '/v1/projects/:id', { params: { id: project.id }, body })
    toast('project saved', 'good')
  },
})

/** Deletes an empty project, after its name is typed. */
export const removeProjectDialog = ({ api, toast }: DialogNeeds, { id, name }: Project): Dialog => ({
  kind: 'confirm',
  title: 'Delete project',
  lines: ['It has no applications, so nothing else is deleted.'],
  confirmText: name,
  verb: 'delete',
  async submit() {
    await api.asDeveloper('DELETE', '/v1/projects/:id', { params: { id } })
    toast('project deleted', 'good')
  },
})
