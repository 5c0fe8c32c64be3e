import { fragment } from './fragment.ts'

export const whole = [fragment]
