/** Why a connection is over, for people. Texts of the peer are cut, and the password is taken out should one repeat it. */
import { type Command, commandName } from './commands.ts'
import type { Control } from './controls.ts'

const MAX_CHARACTERS = 500
const detachCodes = ['normal', 'session busy', 'transport busy', 'not attached', 'unknown ids']

export function closeReason(close: Extract<Control, { name: 'connection.close' }>, isLogin: boolean): string {
  const what = isLogin ? 'the server refused the login' : 'the server closed the connection'
  return withText(`${what} (${close.code ?? 'no code'})`, close.text)
}

export function detachReason(code = 0): string {
  return `the server detached the session (${code}: ${detachCodes[code] ?? 'unknown'})`
}

export function exceptionReason(exception: Extract<Command, { name: 'execution.exception' }>): string {
  const { code, classCode = 0, commandCode = 0, text } = exception
  const name = commandName(classCode, commandCode) ?? 'a command'
  return withText(`the server refused ${name} and ended the session (${code ?? 'no code'})`, text)
}

export function forPeople(reason: string, password = ''): string {
  const shown = password === '' ? reason : reason.replaceAll(password, '***')
  return shown.slice(0, MAX_CHARACTERS)
}

function withText(what: string, text = ''): string {
  return text === '' ? what : `${what}: ${text}`
}
