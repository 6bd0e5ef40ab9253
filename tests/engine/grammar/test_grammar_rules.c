/* SPDX-License-Identifier: MIT
 *
 * test_grammar_rules.c - every rule of a schema but patterns, with texts that it allows
 * and others, as the validator jsonschema 4.26 has them but for formats, which count
 * here; and those that are refused
 */
#include "tests/engine/grammar/grammar_rules.h"

static void texts(void **state)
{
    static const struct rule rules[] = {
        {"{'allOf':[{'type':['number','string']},{'type':['number','null']}]}",
         "1.5\n'a'\nnull\n2", "+--+"},
        {"{'allOf':[{'type':['integer','string']},{'type':['number','null']}]}",
         "1.5\n2\nnull", "-+-"},
        {"{'allOf':[{'type':'number'},{'type':'integer'}]}", "1.5\n2", "-+"},
        {"{'allOf':[{'type':'object','additionalProperties':{'type':'integer'}},{'"
         "additionalProperties':{'type':['integer','string']}}]}",
         "{'a':1}\n{'a':'x'}\n{}", "+-+"},
        {"{'allOf':[{'type':'object','additionalProperties':{'type':'integer'}},{'"
         "additionalProperties':{'minimum':3}}]}",
         "{'a':3}\n{'a':2}", "+-"},
        {"{'allOf':[{'type':'object','properties':{'a':{'type':'integer'}},'required':["
         "'a']},{'required':['a'],'properties':{'a':{'minimum':2}}}]}",
         "{'a':2}\n{'a':1}\n{}", "+--"},
        {"{'allOf':[{'type':'object','properties':{'a':{'type':'integer'}},'"
         "additionalProperties':false},{'properties':{'b':{'type':'integer'}}}]}",
         "{'a':1}\n{'b':1}\n{'a':1,'b':2}", "+--"},
        {"{'allOf':[{'type':'object','required':['a','b']},{'properties':{'a':{},'b':{'"
         "type':'null'}}}]}",
         "{'a':1,'b':null}\n{'a':1}\n{'a':1,'b':1}", "+--"},
        {"{'allOf':[{'type':'array','items':{'type':'integer'}},{'items':{'minimum':2}}"
         "]}",
         "[2]\n[1]\n[]", "+-+"},
        {"{'allOf':[{'type':'array','prefixItems':[{'type':'integer'}],'items':{'type':"
         "'string'}},{'minItems':1}]}",
         "[1]\n[1,'a']\n['a']\n[]", "++--"},
        {"{'anyOf':[{'allOf':[{'type':'string'},{'type':'integer'}]},{'type':'null'}]}",
         "null\n1\n'a'", "+--"},
        {"{'type':'integer','anyOf':[{'minimum':5},{'maximum':2}],'allOf':[{'minimum':"
         "0}]}",
         "5\n3\n1\n-1", "+-+-"},
        {"{'anyOf':[{'minimum':5},{'maximum':2}],'oneOf':[{'type':'integer'},{'type':'"
         "string'}],'type':['integer','string']}",
         "6\n'a'\n3", "++-"},
        {"{'allOf':[{'enum':[1,2,3]},{'enum':[2,3,4]}]}", "1\n2\n3\n4", "-++-"},
        {"{'allOf':[{'enum':[1,2]},{'const':2}]}", "1\n2", "-+"},
        {"{'allOf':[{'$ref':'#/$defs/"
         "a'},{'maximum':5}],'$defs':{'a':{'type':'integer','minimum':2}}}",
         "1\n2\n5\n6", "-++-"},
        {"{'allOf':[true,{'type':'null'}]}", "null\n1", "+-"},
        {"{'allOf':{}}", "1", "+"},
        {"{'allOf':[]}", "1", "+"},
        {"{'allOf':[{'type':'string','minLength':2},{'maxLength':3},{'minLength':1}]}",
         "'a'\n'ab'\n'abcd'", "-+-"},
        {"{'oneOf':[{'type':'object','properties':{'k':{'const':1}},'required':['k']},{"
         "'type':'object','properties':{'k':{'const':2}},'required':['k']}]}",
         "{'k':1}\n{'k':2}\n{'k':3}", "++-"},
        {"{'oneOf':[{'type':'object','properties':{'a':{'type':'integer'}},'required':["
         "'a'],'additionalProperties':false},{'type':'object','properties':{'b':{'type'"
         ":'integer'}},'required':['b'],'additionalProperties':false}]}",
         "{'a':1}\n{'b':1}\n{}", "++-"},
        {"{'oneOf':[{'type':'object','properties':{'a':{}},'required':['a'],'"
         "additionalProperties':false},{'type':'object','properties':{'a':{},'b':{}},'"
         "required':['a','b'],'additionalProperties':false}]}",
         "{'a':1}\n{'a':1,'b':2}", "++"},
        {"{'oneOf':[{'anyOf':[{'type':'string'},{'type':'integer'}]},{'type':'boolean'}"
         "]}",
         "1\n'a'\ntrue\nnull", "+++-"},
        {"{'oneOf':[{'type':'boolean'},{'oneOf':[{'type':'string'},{'type':'integer'}]}"
         "]}",
         "1\n'a'\ntrue\nnull", "+++-"},
        {"{'oneOf':[{'enum':[1,2]},{'enum':[3]}]}", "1\n3\n4", "++-"},
        {"{'oneOf':[{'const':1},{'type':'string'}]}", "1\n'a'", "++"},
        {"{'oneOf':[{'$ref':'#/$defs/a'},{'$ref':'#/$defs/b'}],'$defs':{'a':{'$ref':'#/"
         "$defs/c'},'b':{'type':'string'},'c':{'type':'null'}}}",
         "null\n'a'\n1", "++-"},
        {"{'oneOf':[{'$ref':'#/$defs/a'},{'type':'null'}],'$defs':{'a':false}}",
         "null\n1", "+-"},
        {"{'oneOf':[{'type':'object','properties':{'k':{'const':1},'x':{'type':'string'"
         "}},'required':['k','x']},{'type':'object','properties':{'k':{'const':2}},'"
         "required':['k']}]}",
         "{'k':1,'x':'a'}\n{'k':2}", "++"},
        {"{'oneOf':[{'type':'object','properties':{'a':{'type':'object','properties':{'"
         "k':{'const':1}},'required':['k']}},'required':['a']},{'type':'object','"
         "properties':{'a':{'type':'object','properties':{'k':{'const':2}},'required':["
         "'k']}},'required':['a']}]}",
         "{'a':{'k':1}}\n{'a':{'k':2}}\n{'a':{'k':3}}", "++-"},
        {"{'oneOf':[{'type':'object','properties':{'k':{'const':1}},'required':['j','k'"
         "]},{'type':'object','properties':{'k':{'const':2}},'required':['k']}]}",
         "{'j':0,'k':1}\n{'k':2}", "-+"},
        {"{'type':'string','oneOf':[{'const':'a'},{'const':'b'}]}", "'a'\n'b'\n'c'",
         "++-"},
        {"{'const':1,'enum':[1,2]}", "1\n2", "+-"},
        {"{'const':[1,2],'enum':[[1,2],[1,3],[1]]}", "[1,2]\n[1,3]", "+-"},
        {"{'const':{'a':1},'enum':[{'a':1.0},{'b':1},{'a':2},{'a':1,'b':2},{'a':1}]}",
         "{'a':1}\n{'b':1}", "+-"},
        {"{'const':true}", "true\nfalse", "+-"},
        {"{'const':{'a':1,'b':[null,false]}}", "{'a':1,'b':[null,false]}\n{'a':1}",
         "+-"},
        {"{'enum':[1,1.0,1.5,'1']}", "1\n1.5\n'1'\n2", "+++-"},
        {"{'type':'integer','enum':[1,1.5,2.0]}", "1\n2", "++"},
        {"{'const':1e+20}", "1e20\n100000000000000000000", "--"},
        {"{'const':1.5,'enum':[1.5,1]}", "1.5\n1", "+-"},
        {"{'const':1.0,'enum':[1]}", "1", "+"},
        {"{'const':1e-99999999}", "0\n0.0", "+-"},
        {"{'const':18446744073709551616,'enum':[18446744073709551616]}",
         "18446744073709551616", "+"},
        {"{'const':1e19,'enum':[10000000000000000000,5]}", "5", "-"},
        {"{'const':0.0,'enum':[0]}", "0", "+"},
        {"{'const':[[1]],'enum':[[[1.0]]]}", "[[1]]", "+"},
        {"{'type':'object','minProperties':0}", "{}", "+"},
        {"{'type':'array','minContains':0}", "[]", "+"},
        {"{'type':'array','uniqueItems':false}", "[1,1]", "+"},
        {"{'type':'string','nullable':false}", "'a'", "+"},
        {"{'type':'string','title':'x','description':'y','examples':[1],'default':2}",
         "'a'", "+"},
        {"{}", "1\n[1]", "++"},
        {"{'$ref':'#/$defs/a%20b','$defs':{'a b':{'type':'null'}}}", "null\n1", "+-"},
        {"{'$ref':'#/$defs/a~1b~0c','$defs':{'a/b~c':{'type':'null'}}}", "null", "+"},
        {"{'$ref':'#/$defs/a~2','$defs':{'a~2':{'type':'null'}}}", "null", "+"},
        {"{'$ref':'#/$defs/%zz','$defs':{'%zz':{'type':'null'}}}", "null", "+"},
        {"{'$ref':'#/$defs/%4','$defs':{'%4':{'type':'null'}}}", "null", "+"},
        {"{'$ref':'#/$defs/%4g','$defs':{'%4g':{'type':'null'}}}", "null", "+"},
        {"{'$ref':'#/$defs/%4a%4F','$defs':{'JO':{'type':'null'}}}", "null", "+"},
        {"{'$ref':'#/$defs/a/0','$defs':{'a':[{'type':'null'}]}}", "null\n1", "+-"},
        {"{'type':'array','items':{'$ref':'#'}}", "[]\n[[]]\n[1]", "++-"},
        {"{'type':'object','properties':{'\u00e9':{'type':'integer'},'\u65e5':{'type':'"
         "integer'},'\U0001f600':{'type':'integer'},'\u00e9a':{'type':'integer'},'a\\'"
         "b':{'type':'integer'},'a\\nb':{'type':'integer'},'\\\\':{'type':'integer'}},'"
         "additionalProperties':{'type':'string'}}",
         "{'\u00e9':1}\n{'\u00e9':'x'}\n{'\u00e8':'x'}\n{'\u00e8':1}\n{'\u65e5':1}\n{'"
         "\u65e5\u672c':'x'}\n{'\U0001f600':1}\n{'\U0001f601':'x'}\n{'a\\'b':1}\n{'a\\'"
         "c':'x'}\n{'\\\\':'x'}\n{'a\\nb':1}\n{'a\\nb':'x'}\n{'':'x'}\n{'\u00e9a':1}\n{"
         "'\u00e9b':'x'}\n{'ab':'x'}\n{'\U0001f600':'x'}",
         "+-+-++++++-+-++++-"},
        {"{'type':'object','properties':{'a':{'type':'integer'},'ab':{'type':'null'}},'"
         "additionalProperties':true}",
         "{'a':1}\n{'a':'x'}\n{'ab':null}\n{'ab':1}\n{'abc':5}\n{'b':5}", "+-+-++"},
        {"{'type':'object','properties':{'a':false},'additionalProperties':false}",
         "{}\n{'a':1}", "+-"},
        {"{'type':'array','prefixItems':[{'type':'integer'},{'type':'string'}],'"
         "maxItems':1}",
         "[1]\n[1,'a']\n[]\n['a']", "+-+-"},
        {"{'type':'array','prefixItems':[{'type':'integer'}],'items':false}",
         "[1]\n[1,2]\n[]", "+-+"},
        {"{'type':'array','items':false}", "[]\n[1]", "+-"},
        {"{'type':'array','maxItems':0}", "[]\n[1]", "+-"},
        {"{'type':'array','minItems':2,'items':{'type':'null'}}", "[null]\n[null,null]",
         "-+"},
        {"{'type':'array','prefixItems':[{'type':'null'}],'maxItems':0}", "[]\n[null]",
         "+-"},
        {"{'type':'array','prefixItems':[{'type':'null'}],'minItems':3,'maxItems':3,'"
         "items':{'type':'integer'}}",
         "[null,1,2]\n[null,1]", "+-"},
        {"{'type':'array','prefixItems':[{'type':'null'},{'type':'null'}],'items':"
         "false,'maxItems':1}",
         "[null]\n[null,null]", "+-"},
        {"{'type':'string','maxLength':0}", "''\n'a'", "+-"},
        {"{'type':'string','minLength':2,'maxLength':3}",
         "'a'\n'ab'\n'\u65e5\u672c\u8a9e'\n'abcd'", "-++-"},
        {"{'type':'string','format':'int32'}", "'a'", "+"},
        {"{'type':'string','format':'date'}", "'2024-01-02'\n'2024'", "+-"},
        {"{'type':'number','format':'float'}", "1.5", "+"},
        {"{'format':'double'}", "1.5\n'a'", "+-"},
        {"{'type':'integer','format':'int32'}",
         "2147483647\n2147483648\n-2147483648\n-2147483649", "+-+-"},
        {"{'format':'uint8'}", "255\n256\n-1\n'a'", "+---"},
        {"{'type':'number','multipleOf':0.01}", "0.25\n0.255\n1\n-0.5", "+-++"},
        {"{'type':'number','multipleOf':2.5}", "2.5\n5\n3\n-2.5", "++-+"},
        {"{'type':'integer','multipleOf':10000000000,'maximum':5,'minimum':0}", "0\n5",
         "+-"},
        {"{'type':'integer','multipleOf':1000}", "1000\n500\n0\n-2000", "+-++"},
        {"{'type':'number','multipleOf':1000}", "1000\n500\n0", "+-+"},
        {"{'type':'number','multipleOf':1e-09}", "0.000000001", "+"},
        {"{'type':'number','multipleOf':0.5,'maximum':3}", "2.5\n3.5\n3\n-1.5", "+-++"},
        {"{'type':'number','multipleOf':0.001,'minimum':0.0005,'maximum':0.01}",
         "0.001\n0.0005\n0.01", "+-+"},
        {"{'type':'integer','minimum':99,'maximum':101}", "99\n98\n100\n101\n102",
         "+-++-"},
        {"{'type':'number','exclusiveMinimum':99}", "99\n99.5\n100", "-++"},
        {"{'type':'number','minimum':99.5}", "99\n99.5\n100", "-++"},
        {"{'type':'number','minimum':99.5,'multipleOf':0.5}", "99\n99.5\n100.5", "-++"},
        {"{'type':'integer','exclusiveMinimum':999}", "999\n1000", "-+"},
        {"{'type':'integer','exclusiveMaximum':10,'minimum':8}", "8\n9\n10", "++-"},
        {"{'type':'number','exclusiveMaximum':1,'exclusiveMinimum':0}", "0.5\n0\n1",
         "+--"},
        {"{'type':'number','minimum':-1.5,'maximum':1.5}", "-1.5\n1.5\n1.6\n-1.6\n0",
         "++--+"},
        {"{'type':'integer','minimum':5,'maximum':5}", "5\n6", "+-"},
        {"{'type':'number','multipleOf':0.1,'maximum':0}", "0\n-0.1\n0.1", "++-"},
        {"{'type':'number','maximum':0.05,'minimum':0}", "0.05\n0.06\n0.04\n0", "+-++"},
    };

    (void)state;
    check_rules(rules, sizeof rules / sizeof rules[0]);
}

static void refusals(void **state)
{
    static const struct refusal cases[] = {
        {"{'properties':{'a':{'$ref':'#/$defs/x'}},'$defs':{'x':{'properties':{'b':{"
         "'not':{}}}}}}",
         "#/$defs/x/properties/b"},
        {"{'allOf':[{'type':'array','prefixItems':[{'type':'integer'}]},{'items':{'"
         "type':'string'}}]}",
         "the schema's #: 'prefixItems' and 'items' of several schemas for one value "
         "are not support"},
        {"{'allOf':[{'type':'array','items':{'type':'integer'}},{'prefixItems':[{'type'"
         ":'string'}]}]}",
         "the schema's #: 'prefixItems' and 'items' of several schemas for one value "
         "are not support"},
        {"{'allOf':[{'type':'array','prefixItems':[{}],'items':{}},{'prefixItems':[{}],"
         "'items':{}}]}",
         "the schema's #: 'prefixItems' and 'items' of several schemas for one value "
         "are not support"},
        {"{'allOf':[{'not':{}}]}",
         "the schema's #: the keyword 'not' is not supported"},
        {"{'allOf':[{'type':'string'},{'unevaluatedItems':false}]}",
         "the schema's #: the keyword 'unevaluatedItems' is not supported"},
        {"{'allOf':[{'type':'string'},{'type':'integer'}]}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
        {"{'allOf':[{'type':'string'},{'type':'integer'}],'anyOf':[{'minimum':1}]}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
        {"{'allOf':[false]}", "no text is valid under the schema: something that it "
                              "requires is not allowed, or needs ano"},
        {"{'allOf':[5]}",
         "the schema's #: this is no schema: neither an object nor true or false"},
        {"{'allOf':[{'type':'string','pattern':'^a'},{'pattern':'b$'}]}",
         "the schema's #: several schemas for one value differ in 'pattern', which is "
         "not supported"},
        {"{'allOf':[{'type':'integer','multipleOf':2},{'multipleOf':3}]}",
         "the schema's #: several schemas for one value differ in 'multipleOf', which "
         "is not support"},
        {"{'allOf':[{'type':'string','format':'date'},{'format':'time'}]}",
         "the schema's #: several schemas for one value differ in 'format', which is "
         "not supported"},
        {"{'oneOf':[{'type':'object','properties':{'k':{'const':1}},'required':['k']},{"
         "'type':'object','properties':{'j':{'const':2}},'required':['j']}]}",
         "the schema's #: alternatives 0 and 1 of oneOf may both be valid, which is "
         "not supported; g"},
        {"{'oneOf':[{'anyOf':[{'type':'string'},{'type':'boolean'}]},{'type':'boolean'}"
         "]}",
         "the schema's #: alternatives 0 and 1 of oneOf may both be valid, which is "
         "not supported; g"},
        {"{'oneOf':[{'allOf':[{'type':'string'}]},{'type':'string'}]}",
         "the schema's #: alternatives 0 and 1 of oneOf may both be valid, which is "
         "not supported; g"},
        {"{'oneOf':[{'type':'string'},{'allOf':[{'type':'string'}]}]}",
         "the schema's #: alternatives 0 and 1 of oneOf may both be valid, which is "
         "not supported; g"},
        {"{'oneOf':[{'enum':[1,2]},{'enum':[2,3]}]}",
         "the schema's #: alternatives 0 and 1 of oneOf may both be valid, which is "
         "not supported; g"},
        {"{'oneOf':[{'type':'string'},{'const':'a'}]}",
         "the schema's #: alternatives 0 and 1 of oneOf may both be valid, which is "
         "not supported; g"},
        {"{'oneOf':[{'$ref':'#/$defs/a'},{'type':'null'}],'$defs':{'a':{'$ref':'#/"
         "$defs/a'}}}",
         "the schema's #: alternatives 0 and 1 of oneOf may both be valid, which is "
         "not supported; g"},
        {"{'oneOf':[{'$ref':'#/$defs/a'},{'type':'null'}],'$defs':{'a':true}}",
         "the schema's #: alternatives 0 and 1 of oneOf may both be valid, which is "
         "not supported; g"},
        {"{'oneOf':[{'$ref':'#/$defs/none'},{'type':'null'}]}",
         "the schema's #: $ref '#/$defs/none' names nothing in this schema"},
        {"{'oneOf':[{'type':'object','properties':{'k':{'const':1}}},{'type':'object','"
         "properties':{'k':{'const':2}}}]}",
         "the schema's #: alternatives 0 and 1 of oneOf may both be valid, which is "
         "not supported; g"},
        {"{'oneOf':[{'type':'object','properties':{'k':{'const':1}},'required':['k']},{"
         "'type':'object','properties':{'k':{'const':2}},'required':['j']}]}",
         "the schema's #: alternatives 0 and 1 of oneOf may both be valid, which is "
         "not supported; g"},
        {"{'oneOf':[{'type':'integer'},{'type':'number'}]}",
         "the schema's #: alternatives 0 and 1 of oneOf may both be valid, which is "
         "not supported; g"},
        {"{'type':'array','prefixItems':[{}],'minItems':2,'items':{'$ref':'#'}}",
         "no text is valid under the schema"},
        {"{'const':3,'enum':[1,2]}", "no text is valid under the schema: something "
                                     "that it requires is not allowed, or needs ano"},
        {"{'const':1e400}",
         "the schema's #: the number 1e400 is beyond the range of a double, or none"},
        {"{'enum':[[1e400]]}",
         "the schema's #: the number 1e400 is beyond the range of a double, or none"},
        {"{'enum':[{'a':[1,1e400]}]}",
         "the schema's #: the number 1e400 is beyond the range of a double, or none"},
        {"{'const':1e99999999}", "the schema's #: the number 1e99999999 is beyond the "
                                 "range of a double, or none"},
        {"{'const':9007199254740993,'enum':[9007199254740993.0,9007199254740992]}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
        {"{'const':1e400,'enum':[1]}", "no text is valid under the schema: something "
                                       "that it requires is not allowed, or needs ano"},
        {"{'const':[1],'enum':[{'a':1}]}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
        {"{'type':[]}", "the schema's #: the type '?' is not one of null, boolean, "
                        "object, array, string, integer, "},
        {"{'type':'strange'}", "the schema's #: the type 'strange' is not one of null, "
                               "boolean, object, array, string, int"},
        {"{'type':5}", "the schema's #: the type '?' is not one of null, boolean, "
                       "object, array, string, integer, "},
        {"{'type':['string',5]}", "the schema's #: the type '?' is not one of null, "
                                  "boolean, object, array, string, integer, "},
        {"{'enum':[]}", "the schema's #: enum is not a list of values"},
        {"{'enum':5}", "the schema's #: enum is not a list of values"},
        {"{'type':'string','enum':[1]}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
        {"{'type':'object','minProperties':1}",
         "the schema's #: the keyword 'minProperties' is not supported"},
        {"{'type':'object','minProperties':'x'}",
         "the schema's #: the keyword 'minProperties' is not supported"},
        {"{'type':'array','minContains':-1}",
         "the schema's #: the keyword 'minContains' is not supported"},
        {"{'type':'array','uniqueItems':true}",
         "the schema's #: the keyword 'uniqueItems' is not supported"},
        {"{'type':'string','nullable':true}",
         "the schema's #: the keyword 'nullable' is not supported; write \"type\": "
         "[..., \"null\"]"},
        {"{'type':'string','if':{}}",
         "the schema's #: the keyword 'if' is not supported"},
        {"true", "the schema is no JSON this program can read: line 1, column 4: '[' "
                 "or '{' expected near 't"},
        {"false", "the schema is no JSON this program can read: line 1, column 5: '[' "
                  "or '{' expected near 'f"},
        {"5", "the schema is no JSON this program can read: line 1, column 1: '[' or "
              "'{' expected near '5"},
        {"{'$ref':'#/$defs/a%00b','$defs':{'a':{'type':'null'}}}",
         "the schema's #: $ref '#/$defs/a%00b' names nothing in this schema"},
        {"{'$ref':'#/$defs/a/x','$defs':{'a':[{}]}}",
         "the schema's #: $ref '#/$defs/a/x' names nothing in this schema"},
        {"{'$ref':'#/$defs/a/1x','$defs':{'a':[{}]}}",
         "the schema's #: $ref '#/$defs/a/1x' names nothing in this schema"},
        {"{'$ref':'#/$defs/a/-1','$defs':{'a':[{}]}}",
         "the schema's #: $ref '#/$defs/a/-1' names nothing in this schema"},
        {"{'$ref':'#/$defs/a/9','$defs':{'a':[{}]}}",
         "the schema's #: $ref '#/$defs/a/9' names nothing in this schema"},
        {"{'$ref':'#/$defs/a/','$defs':{'a':[{}]}}",
         "the schema's #: $ref '#/$defs/a/' names nothing in this schema"},
        {"{'$ref':'#/$defs/none/x'}",
         "the schema's #: $ref '#/$defs/none/x' names nothing in this schema"},
        {"{'$ref':5}",
         "the schema's #: $ref '?' is not a place in this schema, like '#/$defs/x'"},
        {"{'$ref':'http://x'}", "the schema's #: $ref 'http://x' is not a place in "
                                "this schema, like '#/$defs/x'"},
        {"{'$ref':'#foo'}",
         "the schema's #: $ref '#foo' is not a place in this schema, like '#/$defs/x'"},
        {"{'$ref':''}",
         "the schema's #: $ref '' is not a place in this schema, like '#/$defs/x'"},
        {"{'$ref':'#/$defs/a/b','$defs':{'a':5}}",
         "the schema's #: $ref '#/$defs/a/b' names nothing in this schema"},
        {"{'type':'object','required':'a'}",
         "the schema's #: 'required' is not a list of names"},
        {"{'type':'object','required':[5]}",
         "the schema's #: 'required' is not a list of names"},
        {"{'type':'object','properties':[]}",
         "the schema's #: 'properties' is no object"},
        {"{'type':'object','properties':{'a':5}}",
         "the schema's #/properties/a: this is no schema: neither an object nor true "
         "or false"},
        {"{'type':'object','properties':{'a':false},'required':['a']}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
        {"{'type':'array','items':false,'minItems':1}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
        {"{'type':'array','minItems':1,'maxItems':0}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
        {"{'type':'array','prefixItems':5}",
         "the schema's #: 'prefixItems' is not a list of schemas"},
        {"{'type':'array','prefixItems':[{'type':'null'}],'items':false,'minItems':2}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
        {"{'type':'array','minItems':-1}",
         "the schema's #: 'minItems' is -1, and not a whole number from 0 on"},
        {"{'type':'array','minItems':'a'}",
         "the schema's #: 'minItems' is \"a\", and not a whole number from 0 on"},
        {"{'type':'string','minLength':1,'maxLength':0}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
        {"{'type':'string','format':'strange'}",
         "the schema's #: the format 'strange' is not supported; docs/schemas.md has "
         "those that are"},
        {"{'type':'string','format':5}",
         "the schema's #: 'pattern' and 'format' are texts without U+0000"},
        {"{'type':'number','multipleOf':0}",
         "the schema's #: 'multipleOf' is 0, and no number above 0"},
        {"{'type':'number','multipleOf':-1}",
         "the schema's #: 'multipleOf' is -1, and no number above 0"},
        {"{'type':'number','multipleOf':'x'}",
         "the schema's #: 'multipleOf' is \"x\", and no number above 0"},
        {"{'type':'number','multipleOf':123457}",
         "the schema's #: 'multipleOf' is 123457; numbers of up to 3 digits are "
         "supported, and zeros"},
        {"{'type':'number','maximum':-1e+308}",
         "the schema's #: 'maximum' leaves only numbers of more than 308 digits"},
        {"{'type':'number','minimum':1e+308}",
         "the schema's #: 'minimum' leaves only numbers of more than 308 digits"},
        {"{'type':'number','minimum':1.5e+308}",
         "the schema's #: 'minimum' leaves only numbers of more than 308 digits"},
        {"{'type':'number','maximum':-1.7e+308}",
         "the schema's #: 'maximum' leaves only numbers of more than 308 digits"},
        {"{'type':'number','minimum':5,'maximum':1}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
        {"{'type':'number','minimum':'5'}", "the schema's #: 'minimum' is \"5\", and "
                                            "no number within the range of a double"},
        {"{'type':'integer','minimum':0.5,'maximum':0.7}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
    };

    (void)state;
    check_refusals(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, open_vocab, close_vocab);
}
