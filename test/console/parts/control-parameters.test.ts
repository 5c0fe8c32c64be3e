import { expect, it } from 'vitest'
import { controlOf, shownArguments } from '../../../console/parts/control-parameters.ts'

it('shows the arguments that are given, and no secret', () => {
  const { parameters } = controlOf({
    name: 'user.add',
    description: '',
    parameters: [
      { name: 'user', type: 'string' },
      { name: 'password', type: 'string', secret: true },
      { name: 'role', type: 'string', optional: true },
    ],
  })
  expect(shownArguments(parameters, { user: 'bob', password: 'eight characters', role: '' })).toEqual([
    ['user', 'bob'],
    ['password', 'not shown'],
  ])
})
