#include <gtest/gtest.h>

#include "contract/yaml_schema.h"

namespace kgate::yaml {

namespace {

std::string said(const Problems& problems) {
  try {
    problems.finish();
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
    return error.failure().what;
  }
}

std::string parse_problems(const std::string& text) {
  Problems problems("f.yaml");
  parse(text, problems);
  return said(problems);
}

}  // namespace

TEST(YamlParse, nodes_have_positions_and_paths) {
  Problems problems("f.yaml");
  Node root = parse("a: 1\nb:\n  - {c: 'x y'}\n  - null\nd: ~\n", problems);
  EXPECT_EQ(said(problems), "");
  ASSERT_EQ(root.entries.size(), 3u);
  const Node& c = *root.find("b")->items[0].find("c");
  EXPECT_EQ(c.path, "b[0].c");
  EXPECT_EQ(c.position.line, 3);
  EXPECT_EQ(c.position.column, 9);
  EXPECT_EQ(c.text, "x y");
  EXPECT_TRUE(c.quoted);
  EXPECT_EQ(root.find("b")->items[1].kind, Node::Kind::null);
  EXPECT_EQ(root.find("b")->items[1].text, "null");
  EXPECT_EQ(root.find("b")->items[1].path, "b[1]");
  EXPECT_EQ(root.find("d")->text, "~");
  EXPECT_EQ(root.find("e"), nullptr);
}

TEST(YamlParse, a_byte_order_mark_and_windows_line_ends_are_read) {
  Problems problems("f.yaml");
  Node root = parse(
      "\xef\xbb\xbf"
      "a: 1\r\nb: 2\r\n",
      problems);
  EXPECT_EQ(said(problems), "");
  EXPECT_EQ(root.find("b")->text, "2");
  EXPECT_EQ(root.find("a")->position.column, 4);
}

TEST(YamlParse, duplicate_keys_are_refused_at_any_depth) {
  EXPECT_EQ(parse_problems("a: 1\nb: {c: 1, d: 2, c: 3}\na: 2\n"),
            "f.yaml:2:17: b.c: duplicate key; it stands on line 2 already\n"
            "f.yaml:3:1: a: duplicate key; it stands on line 1 already");
}

TEST(YamlParse, aliases_anchors_and_tags_are_refused) {
  EXPECT_EQ(parse_problems("a: &x 1\nb: *x\n"),
            "f.yaml:1:4: an anchor (&name); anchors are not supported, write the value out");
  EXPECT_EQ(parse_problems("a: &x {b: 1}\n"),
            "f.yaml:1:4: an anchor (&name); anchors are not supported, write the value out");
  EXPECT_EQ(parse_problems("a: !!int 1\n"), "f.yaml:1:4: a tag (!name); tags are not supported, remove it");
  EXPECT_EQ(parse_problems("a: ! 1\n"), "f.yaml:1:4: a tag (!name); tags are not supported, remove it");
  EXPECT_EQ(parse_problems("!thing\na: 1\n"), "f.yaml:1:1: a tag (!name); tags are not supported, remove it");
  EXPECT_NE(parse_problems("a: *x\n"), "");
}

TEST(YamlParse, a_second_document_is_refused) {
  EXPECT_EQ(parse_problems("---\na: 1\n---\nb: 2\n"),
            "f.yaml:3:1: a second document in the file; keep one document a file");
  EXPECT_EQ(parse_problems("---\na: 1\n...\n"), "");
}

TEST(YamlParse, empty_files_are_refused) {
  for (const char* text : {"", "\n\n", "   \n", "# only a comment\n", "---\n", "~\n", "\xef\xbb\xbf"})
    EXPECT_EQ(parse_problems(text), "f.yaml:1:1: the file is empty") << text;
}

TEST(YamlParse, what_is_no_text_is_refused) {
  EXPECT_EQ(parse_problems(std::string("a: 1\nb: \0\n", 10)), "f.yaml:2:4: not a text file: byte 0x00 at offset 8");
  EXPECT_EQ(parse_problems("\x7f"
                           "ELF"),
            "f.yaml:1:1: not a text file: byte 0x7f at offset 0");
  EXPECT_EQ(parse_problems("a: \xff\n"), "f.yaml:1:4: not a text file: byte 0xff at offset 3");
  EXPECT_EQ(parse_problems("a: \xc0\xaf\n"), "f.yaml:1:4: not a text file: byte 0xc0 at offset 3");
  EXPECT_EQ(parse_problems("a: \xed\xa0\x80\n"), "f.yaml:1:4: not a text file: byte 0xed at offset 3");
  EXPECT_EQ(parse_problems("a: \xe2\x82"), "f.yaml:1:4: not a text file: byte 0xe2 at offset 3");
  EXPECT_EQ(parse_problems(std::string("\xff\xfe"
                                       "a\0",
                                       4)),
            "f.yaml:1:1: not a text file: byte 0xff at offset 0");
  EXPECT_EQ(parse_problems("a: \xc3\xa9\n"), "");
}

TEST(YamlParse, tabs_and_directives_are_refused) {
  EXPECT_EQ(parse_problems("a:\n\tb: 1\n\tc: 2\n"), "f.yaml:2:1: a tab; use spaces\nf.yaml:3:1: a tab; use spaces");
  EXPECT_EQ(parse_problems("%YAML 1.1\n---\na: 1\n"), "f.yaml:1:1: a YAML directive; remove the line");
  EXPECT_EQ(parse_problems("a: 1\rb: 2\n"), "f.yaml:1:5: a carriage return inside a line");
}

TEST(YamlParse, nesting_bombs_are_refused) {
  EXPECT_EQ(parse_problems("a: " + std::string(40, '[') + std::string(40, ']') + "\n"),
            "f.yaml:1:35: nested deeper than 32 levels");
  EXPECT_NE(parse_problems("a: " + std::string(1 << 20, '[')), "");
  EXPECT_NE(parse_problems("a: " + std::string(1 << 20, '{')), "");
  std::string dashes;
  for (int i = 0; i < 100'000; ++i) dashes += "- ";
  EXPECT_NE(parse_problems(dashes + "a\n"), "");
}

TEST(YamlParse, large_files_are_refused) {
  EXPECT_EQ(parse_problems("a: 1\n#" + std::string(kMaxFileBytes, 'x')),
            "f.yaml:1:1: the file has 4194310 bytes; at most 4194304 are read");
  std::string many = "a: [";
  for (size_t i = 0; i < kMaxNodes; ++i) many += "1,\n";
  EXPECT_NE(parse_problems(many + "]\n").find("more than 200000 values in one file"), std::string::npos);
}

TEST(YamlParse, syntax_errors_have_positions) {
  EXPECT_EQ(parse_problems("a: [1, 2\nb: 3\n").find("f.yaml:2:"), 0u);
  EXPECT_EQ(parse_problems("a: 'op''en\n"), "f.yaml:1:4: text in quotes that does not end");
  EXPECT_EQ(parse_problems("a: \"op\\\"en\n"), "f.yaml:1:4: text in quotes that does not end");
  EXPECT_EQ(parse_problems("a: \"op\\\"en\"\nb: 'op''en'\n"), "");
  EXPECT_EQ(parse_problems("a: [x, , y]\n"), "f.yaml:1:8: a[1]: an empty item of a list");
  EXPECT_EQ(parse_problems("a: [x, , null]\n"), "f.yaml:1:8: a[1]: an empty item of a list");
  EXPECT_EQ(parse_problems("a:\n  -\n  - null\n"), "f.yaml:3:3: a[0]: an empty item of a list");
  EXPECT_EQ(parse_problems("a: b: c\n").find("f.yaml:1:"), 0u);
  EXPECT_NE(parse_problems("? [a]\n: b\n"), "");
  EXPECT_NE(parse_problems("~: b\n"), "");
}

TEST(Problems, are_sorted_deduplicated_and_counted) {
  Problems problems("f.yaml");
  problems.add(Position{3, 1}, "third");
  problems.add(Position{1, 9}, "second");
  problems.add(Position{1, 2}, "first");
  problems.add(Position{3, 1}, "third");
  EXPECT_EQ(said(problems), "f.yaml:1:2: first\nf.yaml:1:9: second\nf.yaml:3:1: third");
  for (int i = 0; i < 200; ++i) problems.add(Position{10 + i, 1}, "more");
  EXPECT_NE(said(problems).find("\n... and 103 more"), std::string::npos);
}

TEST(YamlFields, values_are_typed_and_unknown_keys_are_named) {
  Problems problems("f.yaml");
  Node root = parse(
      "count: 5\nname: \"on\"\nrate: 2000/s\nmargin: 5%\nfloor: 2us\nsize: 1KiB\nreal: 1e-3\nflag: true\n", problems);
  Fields fields(root, problems, "workload");
  EXPECT_EQ(fields.integer("count"), 5);
  EXPECT_EQ(fields.string("name"), "on");
  EXPECT_EQ(fields.rate_per_second("rate"), 2000);
  EXPECT_EQ(fields.percent("margin"), 0.05);
  EXPECT_EQ(fields.duration_ns("floor"), 2000);
  EXPECT_EQ(fields.bytes("size"), 1024);
  EXPECT_EQ(fields.number("real"), 1e-3);
  EXPECT_EQ(fields.boolean("flag"), true);
  EXPECT_EQ(fields.integer("absent"), std::nullopt);
  fields.close();
  EXPECT_EQ(said(problems), "");
}

TEST(YamlFields, wrong_values_are_problems_at_their_place) {
  Problems problems("f.yaml");
  Node root = parse("a: yes\nb: \"5\"\nc: off\nd: 5\ne: [1]\nf:\ng: .nan\nh: 010\ncuont: 1\n", problems);
  Fields fields(root, problems, "workload");
  fields.boolean("a");
  fields.integer("b");
  fields.string("c");
  fields.string("d");
  fields.integer("e");
  fields.integer("f");
  fields.number("g");
  fields.integer("h");
  fields.integer("count", true);
  fields.close();
  EXPECT_EQ(said(problems),
            "f.yaml:1:1: the workload has no 'count'; add it\n"
            "f.yaml:1:4: a: \"yes\" is not a boolean; write true or false\n"
            "f.yaml:2:4: b: expected an integer, found text in quotes; remove the quotes\n"
            "f.yaml:3:4: c: expected text; off is not text to every YAML reader; write \"off\"\n"
            "f.yaml:4:4: d: expected text; 5 is not text to every YAML reader; write \"5\"\n"
            "f.yaml:5:4: e: expected an integer, found a list\n"
            "f.yaml:6:1: f: has no value; give an integer\n"
            "f.yaml:7:4: g: \".nan\" is not finite; write a finite number\n"
            "f.yaml:8:4: h: \"010\" starts with 0, which some readers take for octal; write 10\n"
            "f.yaml:9:1: cuont: unknown key in the workload; did you mean 'count'?");
}

TEST(YamlFields, what_is_no_map_is_a_problem_once) {
  Problems problems("f.yaml");
  Node root = parse("[1, 2]\n", problems);
  Fields fields(root, problems, "workload");
  EXPECT_EQ(fields.integer("count", true), std::nullopt);
  fields.close();
  EXPECT_EQ(said(problems), "f.yaml:1:1: expected a map: the fields of a workload");
}

}  // namespace kgate::yaml
