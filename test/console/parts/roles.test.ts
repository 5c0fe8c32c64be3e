import { describe, expect, it } from 'vitest'
import { roleOffer } from '../../../console/parts/roles.ts'

const users = {
  records: [
    { user: 'bob', role: 'admin' },
    { user: 'eve', role: 'night' },
  ],
}
const rules = {
  records: [
    { role: 'backup', object: 'x' },
    { role: 'operator', object: 'y' },
  ],
}

describe('the roles that are offered', () => {
  it.each([
    ['user.add', ['admin', 'backup', 'consumer', 'night', 'operator'], 'none'],
    ['user.role', ['admin', 'backup', 'consumer', 'night', 'operator'], 'none'],
    ['role.remove', ['backup', 'night', 'operator'], 'none'],
    ['role.allow', ['backup', 'night', 'operator'], 'on-request'],
    ['role.deny', ['backup', 'night', 'operator'], 'on-request'],
  ])('for %s are %j; others: %s', (name, texts, others) => {
    expect(roleOffer({ name }, users, rules)).toEqual({ texts, others })
  })

  it('are not all where a list may not be read, so another one can be given', () => {
    expect(roleOffer({ name: 'user.add' }, users, { records: undefined })).toEqual({
      texts: ['admin', 'consumer', 'night', 'operator'],
      others: 'on-request',
    })
  })
})
